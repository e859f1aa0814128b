//! Members of Classical IP subnets.

use super::{Builder, programs_use};
use crate::model::{ElanId, Lec as LecModel, Lis, NodeId, Pvc};
use aerostat_node::host::Host;
use aerostat_proto::clip::{self, Clip};
use aerostat_wire::Vc;
use std::net::Ipv4Addr;

impl Builder<'_> {
    /// An interface on a Classical IP subnet; the first one of a node uses its permanent connections, except those of
    /// programs.
    pub(super) fn add_clip(&self, host: &mut Host, id: NodeId, model: &LecModel, lis: &Lis) {
        let lecs = self.lab.node(id).lecs().iter();
        let mut on_clip = lecs.filter(|lec| self.lab.elan(lec.elan).clip.is_some());
        let first = on_clip.next().is_some_and(|lec| lec.index == model.index);
        let mut config = clip::Config::new(model.address, model.own_ip());
        config.prefix_len = self.lab.elan(model.elan).subnet.length;
        let member = model.member.as_deref().unwrap_or(&lis.usual);
        config.mtu = member.mtu;
        config.per = member.per;
        config.contract = member.contract;
        config.ports.clone_from(&member.ports);
        config.limits.sessions = member.sessions;
        super::scale::widen_clip(&mut config.limits, &self.scale);
        config.serve = lis.server == Some(id);
        config.servers.clone_from(&lis.servers);
        config.params = lis.params;
        config.mux = lis.mux;
        config.hops = crate::hops::of_member(self.lab, model);
        let own = |pvc: &&Pvc| first && pvc.line.is_none();
        for pvc in self.lab.pvcs.iter().filter(own) {
            let own = pvc.ends.iter().position(|(node, _)| *node == id);
            let Some(own) = own else {
                continue;
            };
            if programs_use(self.lab.node(id), pvc.ends[own].1) {
                continue;
            }
            let (far, label) = pvc.ends[1 - own];
            let ip = self.uses_permanent(far, label, model.elan).or(pvc.peer);
            let ip = ip.filter(|ip| Some(*ip) != model.ip);
            config.permanent.push(clip::Permanent {
                vc: pvc.ends[own].1,
                qos: if own == 0 {
                    pvc.qos
                } else {
                    pvc.qos.reversed()
                },
                encapsulation: if pvc.mux {
                    clip::Encapsulation::VcMux
                } else {
                    clip::Encapsulation::Llc
                },
                // If the IP address is not configured, InATMARP asks for it.
                ip,
            });
        }
        host.add_clip(model.mac, move |_| Clip::new(config.clone()));
    }

    /// IP address of the node whose member of this subnet uses the permanent connection at `label`.
    fn uses_permanent(&self, id: NodeId, label: Vc, elan: ElanId) -> Option<Ipv4Addr> {
        let node = self.lab.node(id);
        let mut lecs = node.lecs().iter();
        let first = lecs.find(|lec| self.lab.elan(lec.elan).clip.is_some())?;
        (first.ip).filter(|_| first.elan == elan && !programs_use(node, label))
    }
}
