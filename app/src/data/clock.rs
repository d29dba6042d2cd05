//! The server's clock, as the page knows it.
//!
//! Times on the page come from the server. What is drawn first uses the time at which the server made the page, so that
//! server and browser draw the same; afterwards the browser's clock goes on, set right by what the server says.

use leptos::prelude::*;

use crate::ui::dynamic::dynamic;

use protocol::model::Timestamp;

/// The clock of the page. A copy is another handle on it.
#[derive(Clone, Copy)]
pub struct PageClock {
    now: RwSignal<Timestamp>,
    /// The time of a page that shows what was; it does not go on by itself.
    stands: RwSignal<Option<Timestamp>>,
    /// Server time less the browser's time.
    offset: RwSignal<Option<i64>>,
    /// Minutes east of UTC, once the page may show local times.
    zone: RwSignal<Option<i32>>,
}

impl PageClock {
    /// The clock in context, or one that stands still.
    pub fn use_context() -> Self {
        use_context().unwrap_or_else(|| Self::starting_at(0))
    }

    /// A clock that stands at a time until it is started.
    pub fn starting_at(now: Timestamp) -> Self {
        Self {
            now: RwSignal::new(now),
            stands: RwSignal::new(None),
            offset: RwSignal::new(None),
            zone: RwSignal::new(None),
        }
    }

    /// A clock that stands at a time for good, in a zone of its own: UTC.
    #[cfg(any(test, debug_assertions, feature = "ssr"))]
    pub fn standing_at(now: Timestamp) -> Self {
        Self {
            zone: RwSignal::new(Some(0)),
            ..Self::starting_at(now)
        }
    }

    /// The server's time, in milliseconds since the Unix epoch; readers are told as it goes on.
    ///
    /// A page whose reader has left while the server draws it has no clock any more; nobody sees what is drawn then.
    pub fn now(self) -> Timestamp {
        let stands = self.stands.try_get().flatten();
        stands.or_else(|| self.now.try_get()).unwrap_or_default()
    }

    /// Stands at a time, until it is let go on or set to another one.
    pub fn stand_at(self, at: Timestamp) {
        let _ = self.stands.try_set(Some(at));
    }

    /// Shows the server's time again.
    pub fn go_on(self) {
        let _ = self.stands.try_set(None);
    }

    /// How long ago a time was, in milliseconds; never negative.
    pub fn since(self, at: Timestamp) -> u64 {
        u64::try_from(self.now() - at).unwrap_or(0)
    }

    /// Minutes east of UTC: 0 until the page runs in the browser.
    pub fn zone(self) -> i32 {
        self.zone.try_get().flatten().unwrap_or(0)
    }

    /// Whether local times are shown.
    pub fn is_local(self) -> bool {
        self.zone.try_get().flatten().is_some()
    }

    /// Takes in what the server's clock read when it made a page. Its readers draw with this time first.
    pub fn begin(self, server_now: Timestamp) {
        self.now.set(server_now);
        self.set_right(server_now);
    }

    /// Takes in what the server's clock read when it sent something. Of several readings the one that was on its way
    /// for the shortest time counts, unless the clocks have been set since.
    #[cfg(feature = "hydrate")]
    pub fn set_right(self, server_time: Timestamp) {
        let measured = server_time - js_sys::Date::now() as i64;
        self.offset.update(|offset| {
            *offset = Some(match *offset {
                Some(known) if known - measured < 5_000 => known.max(measured),
                _ => measured,
            });
        });
    }

    /// On the server a page is drawn at one time.
    #[cfg(not(feature = "hydrate"))]
    pub fn set_right(self, server_time: Timestamp) {
        self.offset.set(Some(server_time - self.now.get_untracked()));
    }

    /// Lets the clock go on, in the browser, once the page is hydrated.
    #[cfg(feature = "hydrate")]
    pub fn start(self) {
        use std::time::Duration;
        crate::ui::dynamic::effect(move || {
            self.zone
                .set(Some(-(js_sys::Date::new_0().get_timezone_offset() as i32)));
        });
        crate::ui::dynamic::effect(move || {
            let ticking = set_interval_with_handle(
                move || {
                    if let Some(offset) = self.offset.get_untracked()
                        && !document().hidden()
                    {
                        self.now.set(js_sys::Date::now() as i64 + offset);
                    }
                },
                Duration::from_millis(250),
            );
            on_cleanup(move || {
                if let Ok(ticking) = ticking {
                    ticking.clear();
                }
            });
        });
    }
}

/// A time as `datetime` wants it: RFC 3339, UTC, milliseconds.
pub fn datetime(at: Timestamp) -> String {
    let (days, rest) = (at.div_euclid(86_400_000), at.rem_euclid(86_400_000));
    let (year, month, day) = date(days);
    let time = crate::ui::format::clock(at, 0);
    format!("{year:04}-{month:02}-{day:02}T{time}.{:03}Z", rest % 1_000)
}

/// The day of a time, in days since the Unix epoch, so many minutes east of UTC.
pub fn day_of(at: Timestamp, minutes_east: i32) -> i64 {
    at.saturating_add(i64::from(minutes_east) * 60_000)
        .div_euclid(86_400_000)
}

/// Year, month and day of a day since the Unix epoch (the proleptic Gregorian calendar).
pub fn date(days: i64) -> (i64, u32, u32) {
    // Years are counted from March of year 0, in eras of 400 years, so that the leap day is the last of its year.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (
        year,
        u32::try_from(month).unwrap_or(1),
        u32::try_from(day).unwrap_or(1),
    )
}

/// A time of day, by the server's clock: UTC as the server renders it, local time in the browser.
#[component]
pub fn TimeOfDay(
    /// The time.
    at: Timestamp,
    /// A class, such as `boundary__at`.
    #[prop(optional)]
    class: &'static str,
) -> impl IntoView {
    let clock = PageClock::use_context();
    let words = dynamic(move || crate::ui::format::clock(at, clock.zone()));
    let class = (!class.is_empty()).then_some(class);
    view! { <time class=class datetime=datetime(at)>{words}</time> }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates_of_the_calendar() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(-1), (1969, 12, 31));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(20_787), (2026, 11, 30));
        assert_eq!(datetime(1_790_000_000_123), "2026-09-21T14:13:20.123Z");
    }

    #[test]
    fn the_day_depends_on_the_zone() {
        let late = 86_400_000 - 1;
        assert_eq!((day_of(late, 0), day_of(late, 60), day_of(0, -1)), (0, 1, -1));
    }
}
