//! MPOA clients and servers, and NHRP clients.

use super::{Builder, MPS_DATA_SELECTOR, scale};
use crate::model::{
    Lec as LecModel, Lis, Mpc as MpcModel, Mps as MpsModel, Nhc as NhcModel, NodeId,
    Router as RouterModel,
};
use aerostat_node::host::Host;
use aerostat_proto::Instant;
use aerostat_proto::mpoa::mpc::StaticMps;
use aerostat_proto::mpoa::{Mpc, MpcConfig, Mps, MpsConfig, mps};
use aerostat_proto::nhrp::client;
use aerostat_proto::nhrp::client::Nhc;

impl<'a> Builder<'a> {
    pub(super) fn add_mpc(
        &self,
        host: &mut Host,
        (name, lecs): (&str, &[LecModel]),
        model: &MpcModel,
        life: u32,
    ) {
        let mut config = MpcConfig::new(model.control, model.data);
        scale::widen_mpc(&mut config.limits, &self.scale);
        config.params.clone_from(&model.params);
        let known = model.static_mps.iter().map(|&(mac, control)| StaticMps {
            itf: 0,
            mac,
            control,
        });
        config.static_mps = known.collect();
        config.tag = model.tag;
        config.qos.clone_from(&model.qos);
        config.keys.clone_from(&model.keys);
        // MPOA needs LANE.
        let on_lane = |(_, lec): &(usize, &LecModel)| self.lab.elan(lec.elan).is_lane();
        let lane = lecs.iter().enumerate().filter(on_lane);
        config.itfs = lane.map(|(itf, _)| itf).collect();
        let seed = self.seed_of(name, "mpc", life);
        let new = if self.split { Mpc::split } else { Mpc::new };
        host.add_mpc(move |start| {
            let seed = seed.wrapping_add(start.into());
            new(MpcConfig {
                seed,
                ..config.clone()
            })
        });
        host.start_mpoa_at(Instant::ZERO + model.start);
    }

    /// The NHRP client of a member of a Classical IP subnet.
    pub(super) fn add_nhc(
        &self,
        host: &mut Host,
        (name, life): (&str, u32),
        lec: &LecModel,
        model: &NhcModel,
        lis: &Lis,
    ) {
        let own = lec.address.with_selector(model.address.selector());
        let mut config = client::Config::new(own, lec.address, lec.own_ip(), model.server);
        config.mtu = lis.mtu;
        config.idle = lis.params.idle;
        config.params = model.params;
        config.limits = scale::nhc(&self.lab.limits, &self.scale);
        config.keys.clone_from(&model.keys);
        let seed = self.seed_of(name, "nhc", life);
        host.add_nhc(move |start| {
            let mut config = config.clone();
            config.first_request_id = seed.wrapping_add(start.into()) as u32;
            Nhc::new(config)
        });
    }

    pub(super) fn add_mps(
        &self,
        host: &mut Host,
        (id, name): (NodeId, &str),
        router: &RouterModel,
        model: &MpsModel,
        life: u32,
    ) {
        let usable = |(_, lec): &(usize, &LecModel)| {
            let elan = self.lab.elan(lec.elan);
            elan.is_lane() || elan.clip.as_ref().is_some_and(|lis| lis.nhrp)
        };
        let interfaces = router.lecs.iter().enumerate().filter(usable);
        let interfaces = interfaces.map(|(itf, lec)| {
            let elan = self.lab.elan(lec.elan);
            mps::Interface {
                itf: itf as u32,
                ip: lec.own_ip(),
                prefix_len: elan.subnet.length,
                ip6: self.ip6(id, lec),
                mac: lec.mac,
                elan_id: elan.id,
                lane: elan.is_lane(),
            }
        });
        let interfaces: Vec<_> = interfaces.collect();
        let (control, data) = (
            model.control,
            model.control.with_selector(MPS_DATA_SELECTOR),
        );
        let seed = self.seed_of(name, "mps", life);
        let (params, trigger, register) = (model.params, model.trigger, model.register);
        let limits = scale::mps(&self.lab.limits, &self.scale);
        let keys = model.keys.clone();
        let servers = model.servers.clone();
        let new = if self.split { Mps::split } else { Mps::new };
        host.add_mps(move |start| {
            let seed = seed.wrapping_add(start.into());
            let mut config = MpsConfig::new(control, data, interfaces.clone(), seed);
            (config.params, config.limits) = (params, limits);
            config.trigger = trigger;
            config.register = register;
            config.keys = keys.clone();
            config.servers = servers.clone();
            new(config)
        });
        host.start_mpoa_at(Instant::ZERO + model.start);
    }
}
