//! The message for a link out of the lab that cannot be opened: the link, and the key of the lab file.

use aerostat_lab::model::{L2tpEnds, OutsideWay};
use std::io::{self, ErrorKind};

/// The error with the name of the link and the key that needs a change. The kind of the error stays.
pub(crate) fn explained(way: &OutsideWay, link: &str, error: &io::Error) -> io::Error {
    let (key, value) = match way {
        OutsideWay::AtmTcpListen { at, .. } => ("atmtcp: listen", at.to_string()),
        OutsideWay::AtmTcpConnect { to } => ("atmtcp: connect", to.clone()),
        OutsideWay::Udp { local, .. } => ("udp: local", local.to_string()),
        OutsideWay::Ethernet { interface, .. } => ("ethernet: interface", interface.clone()),
        OutsideWay::Mpls(mpls) => ("mpls: interface", mpls.interface.clone()),
        OutsideWay::L2tp(l2tp) => match l2tp.ends {
            L2tpEnds::Ip(local, _) => ("l2tp: local", local.to_string()),
            L2tpEnds::Udp(local, _) => ("l2tp: local", local.to_string()),
        },
    };
    let text = if error.kind() == ErrorKind::AddrInUse {
        format!(
            "link {link}: another program uses {value} ({key}: of the link); choose another port"
        )
    } else {
        format!("link {link} cannot be opened ({key}: of the link): {error}")
    };
    io::Error::new(error.kind(), text)
}

#[cfg(test)]
mod tests {
    use super::super::Link;
    use super::*;
    use aerostat_lab::model::{NodeId, Packing};
    use aerostat_node::atm::CellRate;
    use mio::{Poll, Token};

    /// Opens the link `east` on a port that is in use.
    fn told(way: &OutsideWay) -> String {
        let poll = Poll::new().unwrap();
        let rate = CellRate::OC3;
        match Link::new(NodeId(0), way, rate, poll.registry(), Token(0)) {
            Ok(_) => panic!("the port was free"),
            Err(error) => explained(way, "east", &error).to_string(),
        }
    }

    #[test]
    fn a_port_in_use_names_its_link_and_its_key() {
        let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let local = taken.local_addr().unwrap();
        let udp = told(&OutsideWay::Udp {
            local,
            peer: "127.0.0.1:9".parse().unwrap(),
            packing: Packing::One,
        });
        assert!(
            udp.starts_with(&format!(
                "link east: another program uses {local} (udp: local:"
            )),
            "{udp}"
        );
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = taken.local_addr().unwrap();
        let tcp = told(&OutsideWay::AtmTcpListen { at, from: None });
        assert!(
            tcp.starts_with(&format!(
                "link east: another program uses {at} (atmtcp: listen:"
            )),
            "{tcp}"
        );
        for text in [udp, tcp] {
            assert!(!text.contains("os error"), "{text}");
        }
    }
}
