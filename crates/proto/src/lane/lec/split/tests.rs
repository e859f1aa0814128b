//! Every message survives encoding and decoding; invalid octets do no harm.

use super::*;
use crate::AtmRequest;
use crate::split::codec::Message as _;
use crate::split::{FRAME_MAX, FromDaemon, Numbered, ToDaemon};

type To = Numbered<ToDaemon<ToLecd>>;
type From = Numbered<FromDaemon<FromLecd>>;

aerostat_testing::message_properties!(To, From);

/// A path for a destination, octet by octet.
#[test]
fn one_form_for_ever() {
    let message = Numbered {
        number: 3,
        message: FromDaemon::Message(FromLecd::Data(ToData::Switch {
            mac: MacAddr([2, 0, 0, 0, 0, 1]),
            to: ConnId(0x8000_0002),
            fresh: Duration::from_secs(6),
        })),
    };
    let expected = [
        &[0, 3, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0x80, 0, 0, 2][..],
        &6_000_000_000_u64.to_be_bytes(),
    ];
    assert_eq!(message.encode(), expected.concat());
}

#[test]
fn the_largest_sdu_fits_and_so_do_as_many_macs_as_are_told() {
    let (conn, sdu) = (ConnId(1), vec![1; 65_535]);
    let number = 1;
    let message = FromDaemon::Atm(AtmRequest::Send { conn, sdu });
    let largest: From = Numbered { number, message };
    assert!(largest.encode().len() <= FRAME_MAX);
    let macs = vec![MacAddr::BROADCAST; MACS];
    let message = ToDaemon::Message(ToLecd::SetRemote(macs));
    assert!(Numbered { number, message }.encode().len() <= FRAME_MAX);
}

/// A trace of the daemon with a name that is not in the list would lose its name.
#[test]
fn every_name_that_the_control_part_uses_is_known() {
    let sources = [
        include_str!("../adopt.rs"),
        include_str!("../arp.rs"),
        include_str!("../control.rs"),
        include_str!("../direct.rs"),
        include_str!("../join.rs"),
        include_str!("../daemon.rs"),
    ];
    let (count, strangers) = aerostat_testing::messages::strangers(&sources, "lane.");
    assert!(strangers.is_empty(), "{strangers:?}");
    assert!(count > 10, "{count}");
}
