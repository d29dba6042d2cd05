use super::*;

fn chunk(index: u32, weight: usize) -> Chunk {
    let first: BlockId = format!("blk_{index}").parse().unwrap();
    Chunk {
        members: vec![first.clone()],
        first,
        group: None,
        is_tools: false,
        round: 0,
        index,
        end: index + 1,
        weight,
    }
}

fn gap(from: u32, to: u32) -> LeftOut {
    LeftOut {
        attempt_id: "att_1".parse().unwrap(),
        from,
        to,
    }
}

fn chunks(from: u32, to: u32) -> Vec<Chunk> {
    (from..to).map(|index| chunk(index, 10)).collect()
}

#[test]
fn the_newest_blocks_of_the_usual_weight_are_shown_and_the_rest_is_counted() {
    let window = Window::of(&chunks(800, 1000), &[gap(0, 800)], None, None);
    assert_eq!((window.start, window.items.len()), (900, 100));
    assert_eq!((window.earlier, window.later), (900, 0));
    let few = Window::of(&chunks(0, 20), &[], None, None);
    assert_eq!((few.start, few.items.len(), few.earlier), (0, 20, 0));
}

#[test]
fn while_blocks_come_the_first_one_stays_until_there_are_too_many() {
    let first = Window::of(&chunks(0, 100), &[], None, None);
    let more = Window::of(&chunks(0, 180), &[], None, Some(&first));
    assert_eq!((more.start, more.items.len()), (0, 180));
    let many = Window::of(&chunks(0, 200), &[], None, Some(&more));
    assert_eq!((many.start, many.items.len()), (100, 100));
}

#[test]
fn what_was_asked_for_is_shown_with_what_follows_as_far_as_there_is_room() {
    let window = Window::of(&chunks(0, 1000), &[], Some(300), None);
    assert_eq!((window.start, window.items.len()), (300, 190));
    assert_eq!((window.earlier, window.later), (300, 510));
}

#[test]
fn a_block_that_is_too_heavy_is_shown_alone() {
    let all = [chunk(0, 10), chunk(1, 5_000), chunk(2, 10)];
    let window = Window::of(&all, &[], Some(1), None);
    assert_eq!((window.start, window.items.len()), (1, 1));
    assert_eq!((window.earlier, window.later), (1, 1));
}

#[test]
fn what_is_left_out_in_between_is_an_item_and_at_the_edges_a_count() {
    let mut all = chunks(10, 20);
    all.extend(chunks(30, 40));
    let window = Window::of(&all, &[gap(0, 10), gap(20, 30)], Some(10), None);
    assert_eq!(window.items.len(), 21);
    assert_eq!((window.earlier, window.later), (10, 0));
    let newest = Window::of(&all, &[gap(0, 10), gap(20, 30)], None, None);
    assert_eq!((newest.start, newest.earlier), (30, 30));
    let nothing = Window::of(&[], &[gap(0, 7)], None, None);
    assert_eq!((nothing.items.len(), nothing.earlier + nothing.later), (0, 7));
}

#[test]
fn a_stretch_before_a_place_has_half_of_the_usual_weight_and_ends_at_what_is_left_out() {
    assert_eq!(start_before(&chunks(0, 1000), &[], 500), 450);
    assert_eq!(start_before(&chunks(480, 1000), &[gap(0, 480)], 500), 480);
    assert_eq!(start_before(&chunks(0, 10), &[], 0), 0);
}
