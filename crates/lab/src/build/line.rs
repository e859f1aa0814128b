//! Ends of ATM lines.

use super::Builder;
use crate::model::{AtmLine, Lec as LecModel, NodeId};
use aerostat_node::host::Host;
use aerostat_proto::line::{Config, Line, Way};
use aerostat_wire::Vc;
use aerostat_wire::line::Session;

/// Number of every session of PPPoE: a line has one.
const SESSION: u16 = 1;

impl Builder<'_> {
    /// An interface on an ATM line.
    pub(super) fn add_line(&self, host: &mut Host, id: NodeId, model: &LecModel, line: &AtmLine) {
        let lab = self.lab;
        // A line has two ends at most.
        let mut all = lab.nodes().flat_map(|(_, node)| node.lecs());
        let peer = all.find(|lec| lec.elan == model.elan && lec.mac != model.mac);
        let address = peer.map(|lec| lec.address).unwrap_or_default();
        let way = match line.calls {
            Some((caller, qos)) if caller == id => Way::Calls { peer: address, qos },
            Some(_) => Way::Called { peer: address },
            None => {
                let mut pvcs = lab.pvcs.iter().filter(|pvc| pvc.line == Some(model.elan));
                let ends = pvcs.next().map(|pvc| {
                    let own = usize::from(pvc.ends[0].0 != id);
                    let qos = if own == 0 {
                        pvc.qos
                    } else {
                        pvc.qos.reversed()
                    };
                    (pvc.ends[own].1, qos)
                });
                // A resolved lab has a connection for each line.
                let (vc, qos) = ends.unwrap_or((Vc::new(0, 0), aerostat_wire::Qos::ubr(u16::MAX)));
                Way::Permanent { vc, qos }
            }
        };
        let session = Session {
            peer: peer.map(|lec| lec.mac).unwrap_or_default(),
            own: model.mac,
            id: SESSION,
        };
        let config = Config {
            address: model.address,
            session,
            mtu: line.mtu,
            way,
            ..Config::permanent(Vc::new(0, 0), line.encapsulation)
        };
        host.add_line(model.mac, move |_| Line::new(config.clone()));
    }
}
