//! A cable in a network namespace, for tests.

use crate::namespace::{NetNs, ip};
use aerostat_wire::MacAddr;
use std::io;

pub(crate) const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xa]);
pub(crate) const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xb]);
pub(crate) const C: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xc]);

/// A cable between interfaces `a` and `b`, up.
pub(crate) fn cable() -> io::Result<()> {
    ip(&[
        "link", "add", "name", "a", "type", "veth", "peer", "name", "b",
    ])?;
    for (end, address) in [("a", A), ("b", B)] {
        ip(&["link", "set", "dev", end, "address", &address.to_string()])?;
        ip(&["link", "set", "dev", end, "up"])?;
    }
    Ok(())
}

/// Runs `test` in a network namespace of its own; where that is impossible, skips the test with the reason.
pub(crate) fn in_namespace(test: impl FnOnce() -> io::Result<()> + Send) {
    match NetNs::create() {
        Ok(namespace) => {
            let made = namespace.run(|| match cable() {
                Ok(()) => test().map(|()| true),
                Err(error) => {
                    println!("skipped: {error}");
                    Ok(false)
                }
            });
            made.unwrap();
        }
        Err(error) => println!("skipped: no network namespace: {error}"),
    }
}
