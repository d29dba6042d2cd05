use serde_json::json;

use super::*;
use ProviderErrorClass as Class;

#[test]
fn every_form_of_an_http_error_gives_its_class_and_message() {
    let cases = [
        (
            400,
            r#"{"error":{"message":"bad field","type":"invalid_request_error"}}"#,
            Class::InvalidRequest,
            "bad field",
        ),
        (
            401,
            r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"},"request_id":"r"}"#,
            Class::Authentication,
            "invalid x-api-key",
        ),
        (402, r#"{"error":"no credits"}"#, Class::Billing, "no credits"),
        (
            403,
            r#"{"detail":"forbidden"}"#,
            Class::Authentication,
            "forbidden",
        ),
        (
            422,
            r#"{"detail":[{"loc":["body"],"msg":"field required","type":"missing"}]}"#,
            Class::InvalidRequest,
            "field required",
        ),
        (
            400,
            r#"{"object":"error","message":"flat","type":"invalid_request_error","code":"1214"}"#,
            Class::InvalidRequest,
            "flat",
        ),
        (
            404,
            "event: error\ndata: {\"error\":{\"code\":404,\"message\":\"no such model\",\"status\":\"NOT_FOUND\"}}\n\n",
            Class::NotFound,
            "no such model",
        ),
        (
            404,
            r#"[{"error":{"code":404,"message":"in an array","status":"NOT_FOUND"}}]"#,
            Class::NotFound,
            "in an array",
        ),
        (
            429,
            r#"{"error":{"message":"slow down","code":"rate_limit_exceeded"}}"#,
            Class::RateLimited,
            "slow down",
        ),
        (
            429,
            r#"{"error":{"message":"check your plan","code":"insufficient_quota"}}"#,
            Class::Billing,
            "check your plan",
        ),
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}"#,
            Class::ContextLength,
            "maximum context length",
        ),
        (
            502,
            "<html><head><title>502 Bad\n Gateway</title></head></html>",
            Class::Server,
            "502 Bad Gateway",
        ),
        (
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Class::Overloaded,
            "Overloaded",
        ),
        (500, "", Class::Server, "HTTP 500 without a message"),
        (
            503,
            "upstream connect error",
            Class::Server,
            "upstream connect error",
        ),
    ];
    for (status, body, class, words) in cases {
        let error = from_http(status, body, None);
        assert_eq!((error.class, error.status), (class, Some(status)), "{body}");
        assert!(error.message.contains(words), "{:?} has {words:?}", error.message);
    }
}

#[test]
fn an_error_inside_a_stream_is_found_in_every_form_and_nothing_else_is_one() {
    let errors = [
        (
            json!({"type":"error","error":{"type":"overloaded_error","message":"busy"}}),
            Class::Overloaded,
        ),
        (
            json!({"error":{"message":"x","code":502},"choices":[]}),
            Class::Server,
        ),
        (
            json!({"error":{"message":"x","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"secret","status_code":400}}),
            Class::Server,
        ),
        (json!({"error":"words"}), Class::Server),
        (
            json!({"error":{"type":"rate_limit_error","message":"too many tokens per minute"}}),
            Class::RateLimited,
        ),
        (
            json!({"error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens"}}),
            Class::ContextLength,
        ),
        (
            json!({"error":{"message":"x","code":"context_length_exceeded"}}),
            Class::ContextLength,
        ),
        (
            json!({"object":"error","message":"x","type":"BadRequestError","code":400}),
            Class::InvalidRequest,
        ),
        (json!({"code":429,"message":"x"}), Class::RateLimited),
    ];
    for (value, class) in errors {
        let error = error_in(&value).unwrap_or_else(|| panic!("{value} is an error"));
        assert_eq!(error.class, class, "{value}");
        assert!(!error.message.contains("secret"));
    }
    for value in [
        json!({"choices":[]}),
        json!({"error":null,"choices":[]}),
        json!({"type":"ping"}),
        json!(1),
    ] {
        assert_eq!(error_in(&value), None, "{value}");
    }
}

#[test]
fn a_wait_is_read_as_seconds_fractions_milliseconds_or_a_date() {
    assert_eq!(retry_after_ms(None, Some("7"), 0), Some(7_000));
    assert_eq!(retry_after_ms(None, Some("0.25"), 0), Some(250));
    assert_eq!(retry_after_ms(Some("120"), Some("7"), 0), Some(120));
    assert_eq!(
        retry_after_ms(None, Some("Thu, 01 Jan 1970 00:01:00 GMT"), 20_000),
        Some(40_000)
    );
    assert_eq!(
        retry_after_ms(None, Some("Thu, 01 Jan 1970 00:01:00 GMT"), 90_000),
        Some(0)
    );
    assert_eq!(retry_after_ms(None, Some("soon"), 0), None);
    assert_eq!(retry_after_ms(None, Some("-1"), 0), None);
    assert_eq!(retry_after_ms(None, None, 0), None);
}

#[test]
fn a_quota_that_says_when_it_is_back_is_a_rate_limit_and_a_wrong_key_is_no_wrong_request() {
    let quota = json!({"error":{"code":429,"status":"RESOURCE_EXHAUSTED",
        "message":"You exceeded your current quota, please check your plan and billing details.",
        "details":[{"quotaMetric":"m"},{"retryDelay":"34.07s"}]}});
    let error = from_http(429, &json!([quota]).to_string(), None);
    assert_eq!(
        (error.class, error.retry_after_ms),
        (Class::RateLimited, Some(34_070))
    );
    assert_eq!(
        from_http(429, &quota.to_string(), Some(5)).retry_after_ms,
        Some(5),
        "a header counts first"
    );
    let final_quota = json!({"error":{"code":"insufficient_quota","message":"Check your billing details."}});
    assert_eq!(
        from_http(429, &final_quota.to_string(), None).class,
        Class::Billing
    );
    let key = json!({"error":{"code":400,"status":"INVALID_ARGUMENT","message":"API key not valid. Pass a valid one."}});
    assert_eq!(
        from_http(400, &key.to_string(), None).class,
        Class::Authentication
    );
}
