//! Which addresses belong to the public web.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use ipnet::{Ipv4Net, Ipv6Net};

/// What the registries of special-purpose addresses (RFC 6890 and those after it) set apart, and multicast.
const SPECIAL_V4: [&str; 15] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
];

/// All that is public lies in here.
const PUBLIC_V6: &str = "2000::/3";

/// And of it not: protocols' own, documentation, and tunnels that hold an address of version 4.
const SPECIAL_V6: [&str; 4] = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];

static V4: LazyLock<Vec<Ipv4Net>> =
    LazyLock::new(|| SPECIAL_V4.iter().filter_map(|net| net.parse().ok()).collect());
static V6: LazyLock<Vec<Ipv6Net>> =
    LazyLock::new(|| SPECIAL_V6.iter().filter_map(|net| net.parse().ok()).collect());
static GLOBAL_V6: LazyLock<Option<Ipv6Net>> = LazyLock::new(|| PUBLIC_V6.parse().ok());

/// Whether an address is one of the public web.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !V4.iter().any(|net| net.contains(&address))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    GLOBAL_V6.is_some_and(|net| net.contains(&address)) && !V6.iter().any(|net| net.contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_network_of_the_tables_is_one() {
        assert_eq!((V4.len(), V6.len()), (SPECIAL_V4.len(), SPECIAL_V6.len()));
        assert!(GLOBAL_V6.is_some());
    }

    #[test]
    fn only_addresses_of_the_public_web_are_public() {
        for public in [
            "1.1.1.1",
            "93.184.215.14",
            "172.32.0.1",
            "2606:4700:4700::1111",
            "2a00::1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for private in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }
}
