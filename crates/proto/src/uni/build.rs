//! Conversion between the owner's parameters and the elements of a message.

use aerostat_wire::q2931::{
    Aal, ConnectionId, Decoded, Element, Ie, MessageType, Number, Screening, convert, id, ie, table,
};
use aerostat_wire::{AtmAddress, Bhli, Blli, Qos, Vc};

use super::negotiate::replace;
use super::state::CallKey;
use super::{ConnectInfo, SetupInfo, Uni, Version};

/// Elements that the interface itself makes; they are never forwarded.
const OWN: [u8; 2] = [id::CONNECTION_ID, id::ENDPOINT_REFERENCE];

/// Elements of a SETUP that an ADD PARTY omits because they hold for the whole call.
pub(super) const INHERITED: [u8; 6] = [
    id::TRAFFIC_DESCRIPTOR,
    id::BEARER_CAPABILITY,
    id::QOS_PARAMETER,
    id::EXTENDED_QOS,
    id::OAM_TRAFFIC,
    id::ALTERNATIVE_TRAFFIC,
];

impl SetupInfo {
    /// Sets the calling number as screened by the network. If the caller gave no number, or one that cannot be checked,
    /// `address` replaces it. Source: Q.2931 §4.5.13, Q.951.3.
    pub fn vouch(&mut self, address: AtmAddress, screening: Screening) {
        let own = self.elements.iter().find(|e| e.id == id::CALLING_NUMBER);
        let given = own.and_then(|e| match ie::decode(e) {
            Ok(Ie::CallingNumber(number)) => Some(number),
            _ => None,
        });
        let number = given.filter(|number| number.address() == Some(address));
        let number = number.unwrap_or_else(|| Number::calling(address));
        self.calling = Some(address);
        let element = Ie::CallingNumber(number.screened(screening)).encode();
        replace(&mut self.elements, element);
    }
}

impl Uni {
    /// Elements of a SETUP or ADD PARTY in the order of linux-atm: AAL, traffic, bearer, B-HLI, B-LLI, called, calling,
    /// connection identifier, QoS, endpoint reference; the owner's elements come first.
    pub(super) fn setup_elements(
        &self,
        kind: MessageType,
        info: &SetupInfo,
        vc: Option<Vc>,
        party: Option<u16>,
    ) -> Vec<Element> {
        let version = self.params.version;
        let mut out = relayed(version, kind, &info.elements);
        let [aal, traffic, bearer, qos] = convert::elements(&info.qos, info.multipoint, version);
        let given = |out: &Vec<Element>, id| out.iter().any(|e: &Element| e.id == id);
        let add = |out: &mut Vec<Element>, ie: &Ie| {
            let element = ie.encode();
            let allowed = kind.definition().is_some_and(|d| d.most(element.id) > 0);
            if allowed && !given(out, element.id) {
                out.push(element);
            }
        };
        add(&mut out, &aal);
        add(&mut out, &traffic);
        add(&mut out, &bearer);
        if let Some(bhli) = info.bhli {
            add(&mut out, &bhli.ie());
        }
        if let Some(blli) = info.blli {
            add(&mut out, &Ie::Blli(blli));
        }
        add(&mut out, &Ie::CalledNumber(Number::called(info.called)));
        if let Some(calling) = info.calling {
            // Without presentation and screening, like Linux hosts: the default values are intended.
            add(&mut out, &Ie::CallingNumber(Number::called(calling)));
        }
        if let Some(vc) = vc {
            add(&mut out, &Ie::ConnectionId(ConnectionId::exact(vc)));
        }
        if !given(&out, id::EXTENDED_QOS) {
            add(&mut out, &qos);
        }
        if let Some(least) = convert::minimum(&info.qos)
            && version.has_element(id::MINIMUM_TRAFFIC)
            && !given(&info.elements, id::TRAFFIC_DESCRIPTOR)
            && !info.multipoint
        {
            add(&mut out, &Ie::MinimumTraffic(least));
        }
        if let Some(desired) = convert::desired(&info.qos)
            && version.has_element(id::MINIMUM_CELL_RATE)
        {
            add(&mut out, &desired);
        }
        if let Some(party) = party {
            out.push(endpoint(party, false).encode());
        }
        out
    }

    /// Elements of a CONNECT or ADD PARTY ACK, without endpoint reference and connection identifier.
    pub(super) fn connect_elements(&self, kind: MessageType, info: &ConnectInfo) -> Vec<Element> {
        let version = self.params.version;
        let mut out = relayed(version, kind, &info.elements);
        let given = |out: &Vec<Element>, id| out.iter().any(|e: &Element| e.id == id);
        if let Some((forward, backward)) = info.max_sdu
            && !given(&out, id::AAL_PARAMETERS)
        {
            let mut qos = Qos::ubr(forward);
            qos.rx.max_sdu = backward;
            out.push(Ie::Aal(convert::aal(&qos, version)).encode());
        }
        if let Some(blli) = info.blli
            && !given(&out, id::BLLI)
        {
            out.push(Ie::Blli(blli).encode());
        }
        out
    }

    /// The endpoint reference in messages of this end about a party of this call.
    pub(super) fn endpoint(&self, key: CallKey, party: u16) -> Ie {
        // UNI 3.0 leaves the flag 0 in both directions.
        endpoint(party, !key.ours && self.params.version != Version::Uni30)
    }
}

const fn endpoint(value: u16, flag: bool) -> Ie {
    Ie::EndpointReference { flag, value }
}

/// The elements in `elements` that a message of this kind and version may have, adapted to the version. Undefined
/// elements with the pass-along request may go in any message.
pub(super) fn relayed(version: Version, kind: MessageType, elements: &[Element]) -> Vec<Element> {
    let definition = kind.definition();
    let passes = |e: &Element| table::definition(e.id).is_none() && e.instruction.pass_along();
    let has = |e: &Element| definition.is_some_and(|d| d.most(e.id) > 0) || passes(e);
    let fits = |e: &&Element| !OWN.contains(&e.id) && has(e);
    let elements = elements.iter().filter(fits);
    elements.filter_map(|e| version.adapt(e)).collect()
}

/// The label in a message.
pub(super) fn label(decoded: &Decoded) -> Option<Vc> {
    match decoded.ie(id::CONNECTION_ID) {
        Some(Ie::ConnectionId(id)) => id.vc(),
        _ => None,
    }
}

/// The endpoint reference value in a message. Its flag depends on which side started the call, and UNI 3.0 does not set
/// it, so only the value is used.
pub(super) fn party(decoded: &Decoded) -> Option<u16> {
    match decoded.ie(id::ENDPOINT_REFERENCE) {
        Some(Ie::EndpointReference { value, .. }) => Some(value),
        _ => None,
    }
}

/// The called address, if it is an AESA.
pub(super) fn called(decoded: &Decoded) -> Option<AtmAddress> {
    match decoded.ie(id::CALLED_NUMBER) {
        Some(Ie::CalledNumber(number)) => number.address(),
        _ => None,
    }
}

fn calling(decoded: &Decoded) -> Option<AtmAddress> {
    match decoded.ie(id::CALLING_NUMBER) {
        Some(Ie::CallingNumber(number)) => number.address(),
        _ => None,
    }
}

fn blli(decoded: &Decoded) -> Option<Blli> {
    match decoded.ie(id::BLLI) {
        Some(Ie::Blli(blli)) => Some(blli),
        _ => None,
    }
}

fn bhli(decoded: &Decoded) -> Option<Bhli> {
    match decoded.ie(id::BHLI) {
        Some(Ie::Bhli { kind, info }) => Bhli::new(kind, &info),
        _ => None,
    }
}

/// The elements for an owner that forwards messages: all good elements except those that the interface makes itself.
pub(super) fn handed_on(decoded: &Decoded) -> Vec<Element> {
    let good = decoded.good().filter(|e| !OWN.contains(&e.id));
    good.cloned().collect()
}

/// The contents of a SETUP or ADD PARTY; `inherited` has the elements that an ADD PARTY omits.
pub(super) fn setup_info(
    decoded: &Decoded,
    called: AtmAddress,
    inherited: &[Element],
) -> SetupInfo {
    let mut elements = handed_on(decoded);
    for element in inherited {
        if elements.iter().all(|e| e.id != element.id) {
            elements.push(element.clone());
        }
    }
    let value = |wanted| {
        let element = elements.iter().find(|e| e.id == wanted)?;
        ie::decode(element).ok()
    };
    let aal = match value(id::AAL_PARAMETERS) {
        Some(Ie::Aal(aal)) => Some(aal),
        _ => None,
    };
    let bearer = match value(id::BEARER_CAPABILITY) {
        Some(Ie::Bearer(bearer)) => Some(bearer),
        _ => None,
    };
    let traffic = match value(id::TRAFFIC_DESCRIPTOR) {
        Some(Ie::Traffic(fields)) => fields,
        _ => aerostat_wire::q2931::Fields::new(),
    };
    let qos = convert::qos(&traffic, bearer.as_ref(), aal.as_ref());
    let qos = match value(id::MINIMUM_CELL_RATE) {
        Some(Ie::MinimumCellRate { fields, .. }) => convert::with_desired(qos, &fields),
        _ => qos,
    };
    SetupInfo {
        called,
        calling: calling(decoded),
        blli: blli(decoded),
        bhli: bhli(decoded),
        qos,
        multipoint: bearer.is_some_and(|b| b.multipoint),
        elements,
    }
}

/// The contents of a CONNECT or ADD PARTY ACK.
pub(super) fn connect_info(decoded: &Decoded) -> ConnectInfo {
    let max_sdu = match decoded.ie(id::AAL_PARAMETERS) {
        Some(Ie::Aal(aal)) => Aal::max_sdu(&aal),
        _ => None,
    };
    ConnectInfo {
        blli: blli(decoded),
        max_sdu,
        elements: handed_on(decoded),
    }
}
