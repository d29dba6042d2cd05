//! How durations, sizes, counts and times of day are written.

/// A duration in milliseconds: `<0.1 s`, `11.4 s`, `5 m 06 s`, `1 h 02 m`, `2 d 03 h`.
#[must_use]
pub fn duration(milliseconds: u64) -> String {
    let tenths = milliseconds.saturating_add(50) / 100;
    let seconds = milliseconds.saturating_add(500) / 1000;
    match milliseconds {
        0 => "0.0 s".to_owned(),
        _ if tenths == 0 => "<0.1 s".to_owned(),
        _ if tenths < 600 => [&(tenths / 10).to_string(), ".", &(tenths % 10).to_string(), " s"].concat(),
        _ if seconds < 3_600 => pair(seconds / 60, " m ", seconds % 60, " s"),
        _ if seconds < 86_400 => pair(seconds / 3_600, " h ", seconds / 60 % 60, " m"),
        _ => pair(seconds / 86_400, " d ", seconds / 3_600 % 24, " h"),
    }
}

/// A size in bytes, by thousands: `46 B`, `24.8 KB`, `1.2 MB`.
#[must_use]
pub fn bytes(size: u64) -> String {
    if size < 1_000 {
        return [&size.to_string(), " B"].concat();
    }
    let mut unit = 1_000_u64;
    let mut name = " KB";
    for (next, next_name) in [
        (1_000_000, " MB"),
        (1_000_000_000, " GB"),
        (1_000_000_000_000, " TB"),
    ] {
        // What would be written as 1000.0 belongs to the next unit.
        if size >= next - next / 20_000 {
            (unit, name) = (next, next_name);
        }
    }
    let tenths = (u128::from(size) * 10 + u128::from(unit) / 2) / u128::from(unit);
    [&(tenths / 10).to_string(), ".", &(tenths % 10).to_string(), name].concat()
}

/// A count with its thousands apart: `3,904`.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The time of day of a Unix time in milliseconds, `HH:MM:SS`, in the zone that is this many minutes east of UTC (0 on the
/// server).
#[must_use]
pub fn clock(unix_milliseconds: i64, minutes_east: i32) -> String {
    let seconds = unix_milliseconds
        .div_euclid(1_000)
        .saturating_add(i64::from(minutes_east) * 60)
        .rem_euclid(86_400);
    let two = |number: i64| {
        if number < 10 {
            ["0", &number.to_string()].concat()
        } else {
            number.to_string()
        }
    };
    [two(seconds / 3_600), two(seconds / 60 % 60), two(seconds % 60)].join(":")
}

fn pair(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    let zero = if small < 10 { "0" } else { "" };
    [
        &large.to_string(),
        large_unit,
        zero,
        &small.to_string(),
        small_unit,
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_one_decimal_below_a_minute_and_two_units_above() {
        let written = [
            0,
            49,
            50,
            100,
            11_449,
            59_949,
            59_950,
            306_000,
            3_599_499,
            3_599_500,
            3_720_000,
            183_600_000,
        ];
        let expected = [
            "0.0 s",
            "<0.1 s",
            "0.1 s",
            "0.1 s",
            "11.4 s",
            "59.9 s",
            "1 m 00 s",
            "5 m 06 s",
            "59 m 59 s",
            "1 h 00 m",
            "1 h 02 m",
            "2 d 03 h",
        ];
        assert_eq!(written.map(duration), expected);
    }

    #[test]
    fn sizes_go_to_the_next_unit_before_they_read_a_thousand() {
        let written = [0, 999, 1_000, 24_800, 999_949, 999_950, 1_200_000, 5_000_000_000].map(bytes);
        assert_eq!(
            written,
            [
                "0 B", "999 B", "1.0 KB", "24.8 KB", "999.9 KB", "1.0 MB", "1.2 MB", "5.0 GB"
            ]
        );
    }

    #[test]
    fn counts_have_their_thousands_apart() {
        assert_eq!(
            [0, 999, 3_904, 1_234_567].map(count),
            ["0", "999", "3,904", "1,234,567"]
        );
    }

    #[test]
    fn clocks_wrap_at_midnight_and_before_the_epoch() {
        assert_eq!(clock(0, 0), "00:00:00");
        assert_eq!(clock(-1, 0), "23:59:59");
        assert_eq!(clock(86_399_999, 60), "00:59:59");
        assert_eq!(clock(50_525_000, -300), "09:02:05");
    }
}
