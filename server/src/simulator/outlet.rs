//! The way from a playing scenario to the socket: a channel that feeds the body, and knows when nobody reads.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use futures::Stream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::wire::{Frame, Framing};

/// Small, so that the time at which something is handed over is close to the time at which it is sent.
const CHANNEL_PIECES: usize = 8;

/// Why a stream cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gone {
    /// The client closed the connection.
    Client,
    /// The simulator is stopped.
    Shutdown,
}

enum Piece {
    Bytes(Bytes),
    Cut,
}

/// The writing end of one reply.
pub(super) struct Outlet {
    sender: mpsc::Sender<Piece>,
    shutdown: CancellationToken,
    framing: Framing,
}

impl Outlet {
    /// An outlet, and the body that it feeds.
    pub(super) fn new(framing: Framing, shutdown: CancellationToken) -> (Self, Body) {
        let (sender, receiver) = mpsc::channel(CHANNEL_PIECES);
        (
            Self {
                sender,
                shutdown,
                framing,
            },
            Body::from_stream(Pieces {
                receiver,
                state: State::Open,
            }),
        )
    }

    /// Sends frames, waiting while the client reads slowly.
    pub(super) async fn send(&mut self, frames: &[Frame]) -> Result<(), Gone> {
        for bytes in self.framing.pieces(frames) {
            self.while_read(self.sender.send(Piece::Bytes(bytes)))
                .await?
                .map_err(|_| Gone::Client)?;
        }
        Ok(())
    }

    /// Sends frames and calls `stamp` at the moment when the first of them can be handed over.
    pub(super) async fn send_stamped(&mut self, frames: &[Frame], stamp: impl FnOnce()) -> Result<(), Gone> {
        let permit = self
            .while_read(self.sender.reserve())
            .await?
            .map_err(|_| Gone::Client)?;
        stamp();
        drop(permit);
        self.send(frames).await
    }

    /// Breaks the connection after what was sent.
    pub(super) async fn cut(&mut self) -> Result<(), Gone> {
        self.while_read(self.sender.send(Piece::Cut))
            .await?
            .map_err(|_| Gone::Client)
    }

    /// Waits for something, as long as the client is there and the simulator runs.
    pub(super) async fn while_read<T>(&self, work: impl Future<Output = T>) -> Result<T, Gone> {
        tokio::select! {
            biased;
            () = self.shutdown.cancelled() => Err(Gone::Shutdown),
            () = self.sender.closed() => Err(Gone::Client),
            done = work => Ok(done),
        }
    }
}

enum State {
    Open,
    /// The cut has come; the server gets one turn to write out what it holds.
    Flushing,
    Done,
}

/// The reading end, polled by the HTTP server.
struct Pieces {
    receiver: mpsc::Receiver<Piece>,
    state: State,
}

impl Stream for Pieces {
    type Item = Result<Bytes, std::io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.state {
            State::Done => return Poll::Ready(None),
            State::Flushing => {
                self.state = State::Done;
                let error = std::io::Error::new(std::io::ErrorKind::ConnectionAborted, "cut by the scenario");
                return Poll::Ready(Some(Err(error)));
            }
            State::Open => {}
        }
        match self.receiver.poll_recv(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Ready(Some(Piece::Bytes(bytes))) => Poll::Ready(Some(Ok(bytes))),
            Poll::Ready(Some(Piece::Cut)) => {
                // The server drops what it has not written when a body fails. It writes when a body has nothing.
                self.state = State::Flushing;
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}
