use axum::http::HeaderName;
use axum::http::header::LAST_MODIFIED;

use super::*;

fn script() -> Asset {
    Asset {
        bytes: Bytes::from_static(b"plain"),
        content_type: content_type("/pkg/runloom.js"),
        etag: "0123".to_owned(),
        br: Some(Bytes::from_static(b"brotli")),
        gzip: Some(Bytes::from_static(b"gzip")),
    }
}

async fn answer(asset: &Asset, sent: &[(HeaderName, &str)]) -> (StatusCode, HeaderMap, Bytes) {
    let mut headers = HeaderMap::new();
    for (name, value) in sent {
        headers.append(name.clone(), value.parse().unwrap());
    }
    let (parts, body) = respond(asset, &headers).into_parts();
    (
        parts.status,
        parts.headers,
        axum::body::to_bytes(body, 1024).await.unwrap(),
    )
}

#[tokio::test]
async fn the_best_accepted_encoding_is_sent() {
    for (accepted, encoding, body) in [
        ("gzip, deflate, br, zstd", Some("br"), "brotli"),
        ("gzip", Some("gzip"), "gzip"),
        ("gzip;q=1, br;q=0.5", Some("gzip"), "gzip"),
        ("br;q=0, *", Some("gzip"), "gzip"),
        ("*;q=0.1", Some("br"), "brotli"),
        ("BR ; Q=0.3", Some("br"), "brotli"),
        ("br;q=0, gzip;q=0", None, "plain"),
        ("br;q=nonsense", None, "plain"),
        ("identity", None, "plain"),
        ("", None, "plain"),
    ] {
        let (status, headers, bytes) = answer(&script(), &[(ACCEPT_ENCODING, accepted)]).await;
        assert_eq!(status, StatusCode::OK, "{accepted}");
        assert_eq!(
            headers.get(CONTENT_ENCODING).map(|value| value.to_str().unwrap()),
            encoding,
            "{accepted}"
        );
        assert_eq!(bytes, body, "{accepted}");
        assert_eq!(headers[VARY], "accept-encoding", "{accepted}");
        assert_eq!(
            headers[CONTENT_TYPE], "text/javascript; charset=utf-8",
            "{accepted}"
        );
        assert_eq!(headers[CACHE_CONTROL], "no-cache", "{accepted}");
    }
}

#[tokio::test]
async fn without_a_compressed_form_the_plain_content_is_sent() {
    let asset = Asset {
        br: None,
        gzip: None,
        ..script()
    };
    let (status, headers, bytes) = answer(&asset, &[(ACCEPT_ENCODING, "br, gzip")]).await;
    assert_eq!((status, bytes.as_ref()), (StatusCode::OK, b"plain".as_slice()));
    assert_eq!(headers.get(CONTENT_ENCODING), None);
}

#[tokio::test]
async fn a_known_tag_gets_304_without_a_body() {
    for known in ["\"0123-br\"", "W/\"0123-br\"", "\"other\", \"0123-br\"", "*"] {
        let (status, headers, bytes) =
            answer(&script(), &[(ACCEPT_ENCODING, "br"), (IF_NONE_MATCH, known)]).await;
        assert_eq!(status, StatusCode::NOT_MODIFIED, "{known}");
        assert_eq!(bytes, "", "{known}");
        assert_eq!(headers[ETAG], "\"0123-br\"", "{known}");
    }
}

#[tokio::test]
async fn a_tag_of_another_version_or_encoding_gets_the_content() {
    for known in ["\"0123\"", "\"0123-gzip\"", "\"ffff-br\"", "0123-br"] {
        let (status, _, bytes) = answer(&script(), &[(ACCEPT_ENCODING, "br"), (IF_NONE_MATCH, known)]).await;
        assert_eq!(
            (status, bytes.as_ref()),
            (StatusCode::OK, b"brotli".as_slice()),
            "{known}"
        );
    }
}

#[tokio::test]
async fn a_path_that_is_not_in_the_table_gets_404() {
    for path in ["/pkg/nothing.js", "/pkg/", "/", "/pkg/../Cargo.toml"] {
        let response = serve(path.parse().unwrap(), HeaderMap::new()).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
        assert_eq!(response.headers().get(LAST_MODIFIED), None);
    }
}

#[tokio::test]
async fn every_embedded_file_is_served_under_its_path() {
    for file in table::FILES {
        let response = serve(file.path.parse().unwrap(), HeaderMap::new()).await;
        assert_eq!(response.status(), StatusCode::OK, "{}", file.path);
        let body = axum::body::to_bytes(response.into_body(), usize::MAX)
            .await
            .unwrap();
        assert_eq!(body, file.bytes, "{}", file.path);
    }
}

#[test]
fn wasm_has_the_type_that_streaming_compilation_asks_for() {
    assert_eq!(content_type("/pkg/runloom.wasm"), "application/wasm");
    assert_eq!(content_type("/pkg/runloom.css"), "text/css; charset=utf-8");
    assert_eq!(content_type("/pkg/unknown"), "application/octet-stream");
}

#[cfg(debug_assertions)]
#[test]
fn a_watched_folder_gives_its_files_and_nothing_outside() {
    let folder = tempfile::tempdir().unwrap();
    let site = folder.path().join("site");
    let style = folder.path().join("style");
    std::fs::create_dir_all(site.join("pkg")).unwrap();
    std::fs::create_dir_all(&style).unwrap();
    std::fs::write(site.join("pkg/runloom.js"), "one").unwrap();
    std::fs::write(style.join("tokens.css"), "two").unwrap();
    std::fs::write(folder.path().join("secret.css"), "three").unwrap();
    let watched = watch::Folder::new(site, style);

    assert_eq!(watched.asset("/pkg/runloom.js").unwrap().bytes, "one");
    assert_eq!(watched.asset("/pkg/tokens.css").unwrap().bytes, "two");
    assert_eq!(watched.asset("/tokens.css"), None);
    assert_eq!(watched.asset("/pkg/../../secret.css"), None);
    assert_eq!(watched.asset("//etc/passwd"), None);
    assert_eq!(watched.asset("/pkg"), None);
}
