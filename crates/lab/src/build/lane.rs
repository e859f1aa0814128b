//! The configuration of the LANE servers of a lab.

use super::scale::grown;
use crate::model::{Elan, Lab, LaneServer, LesAndBus, Scale};
use aerostat_proto::lane::lec::contracts::{CONSTANT, VARIABLE};
use aerostat_proto::lane::{BusConfig, LecsConfig, LesConfig, ServerParams, lecs};
use aerostat_wire::AtmAddress;
use aerostat_wire::lane::{ElanName, Tlv, TlvType};

pub(super) fn lecs_config(lab: &Lab, model: &LaneServer, scale: &Scale) -> LecsConfig {
    LecsConfig {
        address: model.lecs,
        well_known: true,
        elans: (lab.elans())
            .filter(|(_, elan)| elan.is_own())
            .map(|(_, elan)| configured(elan))
            .collect(),
        // Only clients from outside give no ELAN name: those of linux-atm do so by default.
        policies: model.policies.clone(),
        default: model.default.map(|id| elan_name(lab.elan(id))),
        // All clients may ask at the same time.
        params: ServerParams {
            clients: grown(ServerParams::DEFAULT.clients, scale.all),
            ..ServerParams::DEFAULT
        },
    }
}

pub(super) fn elan_name(elan: &Elan) -> ElanName {
    let name = elan
        .foreign
        .as_ref()
        .map_or(&elan.name, |there| &there.name);
    ElanName::new(name).expect("a resolved lab's ELAN names have at most 32 octets")
}

/// The answer of the LECS to clients of this ELAN.
pub(super) fn configured(elan: &Elan) -> lecs::Elan {
    lecs::Elan {
        standby: elan.standby.iter().map(|standby| standby.les).collect(),
        members: elan.members.iter().map(|octets| pattern(octets)).collect(),
        macs: elan.macs.clone(),
        max_frame: elan.max_frame,
        tlvs: tlvs(elan),
        ..lecs::Elan::new(elan_name(elan), elan.les)
    }
}

/// TLVs that the LECS tells clients of this ELAN beside the configuration itself.
fn tlvs(elan: &Elan) -> Vec<Tlv> {
    let mut tlvs = vec![Tlv::u32(TlvType::ELAN_ID, elan.id)];
    if let Some([average, peak]) = elan.multicast_send {
        let kind = if average == peak { CONSTANT } else { VARIABLE };
        tlvs.extend([
            Tlv::u16(TlvType::MULTICAST_SEND_TYPE, kind),
            Tlv::u32(TlvType::MULTICAST_SEND_AVERAGE, average),
            Tlv::u32(TlvType::MULTICAST_SEND_PEAK, peak),
        ]);
    }
    tlvs
}

/// ATM addresses that begin with these octets.
pub(super) fn pattern(octets: &[u8]) -> lecs::AddressPattern {
    let mut value = AtmAddress::ZERO;
    for (to, octet) in value.0.iter_mut().zip(octets) {
        *to = *octet;
    }
    lecs::AddressPattern::prefix(value, octets.len())
}

/// LES and BUS of the ELAN on this host.
pub(super) fn pair(elan: &Elan, model: &LaneServer) -> LesAndBus {
    let standby = model.rank.checked_sub(1).and_then(|n| elan.standby.get(n));
    standby.copied().unwrap_or(LesAndBus {
        les: elan.les,
        bus: elan.bus,
    })
}

/// Address of the LES of an ELAN on this host.
pub(crate) fn les_of(elan: &Elan, model: &LaneServer) -> AtmAddress {
    pair(elan, model).les
}

/// The parameters of LES and BUS on a host.
pub(super) fn server_params(lab: &Lab, model: &LaneServer, scale: &Scale) -> ServerParams {
    let usual = lab.timers.les.clone();
    ServerParams {
        clients: grown(usual.clients, scale.largest),
        quota: model.quota,
        ..usual
    }
}

pub(super) fn les_config(
    elan: &Elan,
    LesAndBus { les, bus }: LesAndBus,
    model: &LaneServer,
    params: ServerParams,
) -> LesConfig {
    LesConfig {
        params,
        max_frame: elan.max_frame,
        elan_id: elan.id,
        v2: elan.v2,
        lecs: (!elan.standby.is_empty()).then_some(model.lecs),
        ..LesConfig::new(elan_name(elan), les, bus)
    }
}

pub(super) fn bus_config(elan: &Elan, bus: AtmAddress, params: ServerParams) -> BusConfig {
    let mut config = BusConfig::new(elan_name(elan), bus);
    config.max_frame = elan.max_frame;
    config.params = params;
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::tests::{SMALL, lab};
    use aerostat_proto::Instant;
    use aerostat_proto::lane::Lecs;

    #[test]
    fn clients_that_name_no_elan_get_the_first() {
        use aerostat_proto::{AtmEvent, AtmRequest, ConnId, Machine as _};
        use aerostat_wire::lane::{Control, ControlFrame, OpCode, Status};
        use aerostat_wire::{AtmAddress, Qos, Sap};
        let lab = lab(SMALL);
        let (_, _, server) = lab.lane_server().unwrap();
        let mut lecs = Lecs::new(lecs_config(&lab, server, &Scale::of(&lab)));
        let caller = AtmAddress([0x47; 20]);
        let mut request = ControlFrame::new(OpCode::CONFIGURE);
        request.source_atm = caller;
        let conn = ConnId(1);
        let incoming = AtmEvent::Incoming {
            conn,
            called: AtmAddress::LECS_ANYCAST,
            calling: Some(caller),
            sap: Sap::LANE_CONTROL,
            qos: Qos::ubr(1516),
            multipoint: false,
        };
        let sdu = request.encode();
        let events = [
            incoming,
            AtmEvent::Received {
                conn,
                sdu: &sdu[..],
            },
        ];
        lecs.handle_input(lecs::Input::Start, Instant::ZERO)
            .unwrap();
        for event in events {
            lecs.handle_input(lecs::Input::Atm(event), Instant::ZERO)
                .unwrap();
        }
        let answer = std::iter::from_fn(|| lecs.poll_output()).find_map(|output| match output {
            lecs::Output::Atm(AtmRequest::Send { sdu, .. }) => Some(sdu),
            _ => None,
        });
        let Ok(Control::Frame(answer)) = Control::decode(&answer.unwrap()) else {
            panic!("no control frame");
        };
        assert_eq!(answer.status, Status::SUCCESS);
        assert_eq!(answer.target_atm, lab.elans[0].les);
    }
}
