use super::*;

#[test]
fn a_reply_has_the_event_sequence_of_the_real_one() {
    let mut encoder = OpenaiResponsesEncoder::new("resp_1".to_owned(), "demo".to_owned());
    let mut out = Vec::new();
    encoder.reasoning("hm", &mut out);
    encoder.text("Hello", &mut out);
    let start = ToolStart {
        id: Some("call_1".to_owned()),
        name: "list_dir".to_owned(),
        index: None,
    };
    encoder.tool_start(&start, &mut out);
    encoder.tool_arguments("{}", &mut out);
    let usage = UsageCounts {
        input: 10,
        output: 5,
        reasoning: 1,
    };
    encoder.stop(StopWord::ToolUse, usage, &mut out);
    encoder.terminal(&mut out);
    let mut last = Value::Null;
    let types: Vec<String> = out
        .iter()
        .enumerate()
        .map(|(number, frame)| {
            let Frame::Event { name, data } = frame else {
                unreachable!("no comments here")
            };
            last = serde_json::from_str(data).unwrap();
            assert_eq!(last["type"], name.unwrap());
            assert_eq!(last["sequence_number"], number);
            name.unwrap().trim_start_matches("response.").to_owned()
        })
        .collect();
    assert_eq!(
        types,
        [
            "created",
            "in_progress",
            "output_item.added",
            "reasoning_summary_part.added",
            "reasoning_summary_text.delta",
            "reasoning_summary_text.done",
            "reasoning_summary_part.done",
            "output_item.done",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "output_item.added",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "output_item.done",
            "completed"
        ]
    );
    let output = last["response"]["output"].as_array().unwrap();
    assert_eq!(output.len(), 3);
    assert_eq!(output[0]["encrypted_content"], signature("hm"));
    assert_eq!(output[2]["call_id"], "call_1");
    assert_eq!(last["response"]["usage"]["output_tokens"], 5);
}
