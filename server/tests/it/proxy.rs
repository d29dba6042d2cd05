//! A network between the server and its database that a test can break.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::postgres::PgConnectOptions;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;

/// Passes bytes on while it is open; closed, it ends every connection and takes no new one.
pub(crate) struct Proxy {
    open: watch::Sender<bool>,
    /// How many connections were turned away.
    refused: watch::Sender<u32>,
    /// The answer to the next commit is lost.
    lose_commit: Arc<AtomicBool>,
    pub(crate) options: PgConnectOptions,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection to the database, while it runs.
async fn reach(target: &PgConnectOptions) -> std::io::Result<Box<dyn Stream>> {
    Ok(match target.get_socket() {
        Some(folder) => {
            let path = folder.join(format!(".s.PGSQL.{}", target.get_port()));
            Box::new(UnixStream::connect(path).await?)
        }
        None => {
            let address = (target.get_host().to_owned(), target.get_port());
            Box::new(TcpStream::connect(address).await?)
        }
    })
}

impl Proxy {
    pub(crate) async fn start(target: PgConnectOptions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (open, _) = watch::channel(true);
        let (refused, _) = watch::channel(0);
        let lose_commit = Arc::new(AtomicBool::new(false));
        let mut options = PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(port)
            .username(target.get_username())
            .database(target.get_database().unwrap());
        if let Some(password) = password(&target) {
            options = options.password(&password);
        }
        let (gate, turned_away, lose) = (open.clone(), refused.clone(), Arc::clone(&lose_commit));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if !*gate.borrow() {
                    turned_away.send_modify(|count| *count += 1);
                    continue;
                }
                let Ok(server) = reach(&target).await else {
                    continue;
                };
                tokio::spawn(pass(client, server, gate.subscribe(), Arc::clone(&lose)));
            }
        });
        Self {
            open,
            refused,
            lose_commit,
            options,
        }
    }

    /// Ends every connection; new ones are turned away.
    pub(crate) fn cut(&self) {
        self.open.send_replace(false);
    }

    /// Connections are possible again.
    pub(crate) fn mend(&self) {
        self.open.send_replace(true);
    }

    /// Waits until this many connections were turned away.
    pub(crate) async fn until_refused(&self, count: u32) {
        let mut refused = self.refused.subscribe();
        let waited = refused.wait_for(|refused| *refused >= count);
        tokio::time::timeout(crate::harness::PATIENCE, waited)
            .await
            .unwrap()
            .unwrap();
    }

    /// The next commit takes place, but its answer is lost with the connection.
    pub(crate) fn lose_next_commit(&self) {
        self.lose_commit.store(true, Ordering::SeqCst);
    }

    /// Whether that has happened.
    pub(crate) fn has_lost_commit(&self) -> bool {
        !self.lose_commit.load(Ordering::SeqCst)
    }

    /// Waits until it has.
    pub(crate) async fn until_commit_is_lost(&self) {
        let lost = async {
            while !self.has_lost_commit() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(crate::harness::PATIENCE, lost)
            .await
            .unwrap();
    }
}

/// The password that the options hold.
fn password(options: &PgConnectOptions) -> Option<String> {
    use sqlx::ConnectOptions as _;
    let url = options.to_url_lossy();
    let password = url.password()?;
    let bytes: Vec<u8> = password.bytes().collect();
    let mut decoded = Vec::new();
    let mut place = 0;
    while let Some(&byte) = bytes.get(place) {
        let hex = (byte == b'%')
            .then(|| std::str::from_utf8(bytes.get(place + 1..place + 3)?).ok())
            .flatten();
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                place += 3;
            }
            None => {
                decoded.push(byte);
                place += 1;
            }
        }
    }
    String::from_utf8(decoded).ok()
}

async fn pass(
    mut client: TcpStream,
    mut server: Box<dyn Stream>,
    mut open: watch::Receiver<bool>,
    lose_commit: Arc<AtomicBool>,
) {
    let (mut up, mut down) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    let mut losing = false;
    loop {
        tokio::select! {
            () = async { drop(open.wait_for(|open| !*open).await) } => return,
            read = client.read(&mut up) => {
                let Ok(length @ 1..) = read else { return };
                if up[..length].windows(6).any(|word| word.eq_ignore_ascii_case(b"commit")) {
                    losing = lose_commit.swap(false, Ordering::SeqCst);
                }
                if server.write_all(&up[..length]).await.is_err() {
                    return;
                }
            }
            read = server.read(&mut down) => {
                let Ok(length @ 1..) = read else { return };
                if losing || client.write_all(&down[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}
