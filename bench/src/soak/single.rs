//! Calls one after another from outside a lab, over ATM over TCP: each is set up, released, and gone before the next.
//!
//! A lab counts its own set-up times in the time of its links, which says nothing of the time that its process needs.
//! A caller outside has only the clock of the machine.

use super::host::{Clock, Event, Host, MAX_SDU, PATIENCE};
use super::line::Direct;
use aerostat_proto::{AtmRequest, ConnId, Duration};
use aerostat_wire::{AtmAddress, Qos, Sap};
use std::io;
use std::net::SocketAddr;

/// Calls of the first tenth of the time are not counted.
const WARM_UP: u32 = 10;

/// Calls `called` through the switch that listens at `to`, for `time`; gives the times from `Connect` to `Connected`,
/// ns, and the number of calls that failed.
///
/// # Errors
/// What the operating system said about the connection.
///
/// # Panics
/// If signalling does not come up within ten seconds.
pub fn one_by_one(
    to: SocketAddr,
    called: AtmAddress,
    time: Duration,
) -> io::Result<(Vec<u64>, u64)> {
    let calling = super::address(1);
    let clock = Clock::start();
    let mut host = Host::new(calling, Box::new(Direct::connect(to)?), clock);
    host.wait_until_up();
    let (mut times, mut failed, mut events) = (Vec::new(), 0, Vec::new());
    let start = clock.now();
    let mut number = 0;
    while clock.now().since(start) < time {
        let asked = clock.now();
        let conn = ConnId(number % ConnId::INCOMING);
        number += 1;
        host.ask(AtmRequest::Connect {
            conn,
            calling,
            called,
            sap: Sap::ANY,
            qos: Qos::ubr(MAX_SDU),
            multipoint: false,
        });
        let mut open = true;
        while host.signalling.calls().next().is_some() {
            if clock.now().since(asked) > PATIENCE {
                return Err(io::ErrorKind::TimedOut.into());
            }
            host.turn(asked + PATIENCE, &mut events);
            for event in events.drain(..) {
                match event {
                    Event::Connected(_) if open => {
                        open = false;
                        let now = clock.now();
                        if now.since(start) > time / WARM_UP {
                            times.push(now.since(asked).as_nanos() as u64);
                        }
                        host.release(conn);
                    }
                    Event::Released(..) => failed += 1,
                    _ => {}
                }
            }
        }
    }
    Ok((times, failed))
}
