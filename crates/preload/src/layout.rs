//! The structures of `<linux/atm.h>` and `<linux/atmsap.h>`, as octets, and the texts of the socket service.
//!
//! The sizes and offsets are those of Linux on x86-64 and aarch64. A C program of the tests compares them with the
//! headers.

use aerostat_wire::{AalType, Bhli, ConnectionQos, Sap, ServiceCategory, TrafficParams};

/// `PF_ATMPVC`.
pub(crate) const ATMPVC: i32 = 8;
/// `PF_ATMSVC`.
pub(crate) const ATMSVC: i32 = 20;
/// `SOL_ATM`.
pub(crate) const SOL_ATM: i32 = 264;
/// Octets of `struct atm_qos`.
pub(crate) const QOS: usize = 84;
/// Octets of `struct atm_trafprm`.
const TRAFPRM: usize = 40;
/// Octets of `struct atm_sap`.
pub(crate) const SAP: usize = 40;
/// Octets of `struct atm_bhli`, and of each `struct atm_blli` behind it.
const LAYER: usize = 10;
/// Octets of `struct sockaddr_atmpvc`.
pub(crate) const PVC_ADDRESS: usize = 12;
/// Octets of `struct sockaddr_atmsvc`.
pub(crate) const SVC_ADDRESS: usize = 44;
/// `ATM_AAL0`: single cells, on permanent connections.
const AAL0: u8 = 13;
/// `ATM_AAL5`.
const AAL5: u8 = 5;

/// Option numbers of `SOL_ATM`: `__SO_NUMBER`.
pub(crate) mod option {
    pub(crate) const SETCLP: u32 = 0;
    pub(crate) const QOS: u32 = 2;
    pub(crate) const SAP: u32 = 3;
    pub(crate) const PVC: u32 = 4;
    pub(crate) const MULTIPOINT: u32 = 5;

    /// The number in an encoded option: `__SO_NUMBER`; `None` for an option of another level.
    pub(crate) const fn number(name: i32) -> Option<u32> {
        let name = name as u32;
        match name >> 22 == super::SOL_ATM as u32 & 0x1ff {
            true => Some(name >> 16 & 0x3f),
            false => None,
        }
    }
}

fn int(octets: &[u8], at: usize) -> i32 {
    let four = octets.get(at..at + 4).and_then(|four| four.try_into().ok());
    four.map_or(0, i32::from_ne_bytes)
}

fn put(octets: &mut [u8], at: usize, value: i32) {
    if let Some(four) = octets.get_mut(at..at + 4) {
        four.copy_from_slice(&value.to_ne_bytes());
    }
}

/// A direction of a contract as text; `None` if the service does not know its class.
fn traffic_text(octets: &[u8]) -> Option<String> {
    let class = match octets.first()? {
        0 => return Some("none".to_owned()),
        // ATM_UBR and ATM_ANYCLASS.
        1 | 5 => "ubr",
        2 => "cbr",
        // VBR has no sustainable rate in this structure, ABR is not there.
        _ => return None,
    };
    let [max_pcr, pcr, min_pcr, cdv, sdu] = [4, 8, 12, 16, 20].map(|at| int(octets, at));
    let mut text = class.to_owned();
    // ATM_MAX_PCR is -1: the rate of the line.
    let peak = if max_pcr == 0 { pcr } else { max_pcr };
    if peak > 0 {
        text += &format!(",max_pcr={peak}");
    } else if class == "cbr" && (peak != 0 || min_pcr > 0) {
        text += &match min_pcr {
            1.. => format!(",max_pcr={min_pcr}"),
            _ => ",max_pcr=max".to_owned(),
        };
    }
    if cdv > 0 {
        text += &format!(",max_cdv={cdv}");
    }
    if sdu > 0 {
        text += &format!(",sdu={sdu}");
    }
    Some(text)
}

/// The contract of a `struct atm_qos` as text; `None` if the service has no such contract.
pub(crate) fn qos_text(octets: &[u8; QOS]) -> Option<String> {
    let aal = match octets[80] {
        // ATM_NO_AAL.
        0 | AAL5 => "aal5",
        AAL0 => "aal0",
        _ => return None,
    };
    let (tx, rx) = (
        traffic_text(&octets[..TRAFPRM])?,
        traffic_text(&octets[TRAFPRM..2 * TRAFPRM])?,
    );
    let class = |text: &str| text.split(',').next().unwrap_or_default().to_owned();
    let first = [class(&tx), class(&rx)]
        .into_iter()
        .find(|class| class != "none")?;
    Some(format!("{first},{aal}:tx:{tx},rx:{rx}"))
}

/// Fills a direction.
fn put_traffic(octets: &mut [u8], traffic: &TrafficParams) {
    let class = match traffic.category {
        None => return,
        Some(ServiceCategory::Cbr) => 2,
        Some(ServiceCategory::RtVbr | ServiceCategory::NrtVbr) => 3,
        Some(ServiceCategory::Abr) => 4,
        Some(ServiceCategory::Ubr | ServiceCategory::Gfr) => 1,
    };
    octets[0] = class;
    let rate = |rate: u32| i32::try_from(rate).unwrap_or(i32::MAX);
    let peak = traffic.max_pcr.map_or(-1, rate);
    put(octets, 4, peak);
    put(octets, 8, peak);
    put(octets, 12, rate(traffic.min_pcr));
    put(
        octets,
        16,
        i32::try_from(traffic.max_cdv.as_micros()).unwrap_or(i32::MAX),
    );
    put(octets, 20, traffic.max_sdu.into());
}

/// The `struct atm_qos` of a contract in a text.
pub(crate) fn qos_octets(text: &str) -> Option<[u8; QOS]> {
    let ConnectionQos { aal, qos } = text.parse().ok()?;
    let mut octets = [0; QOS];
    put_traffic(&mut octets[..TRAFPRM], &qos.tx);
    put_traffic(&mut octets[TRAFPRM..2 * TRAFPRM], &qos.rx);
    octets[80] = match aal {
        AalType::Aal0 => AAL0,
        AalType::Aal5 => AAL5,
    };
    Some(octets)
}

/// Largest SDU that a contract lets its owner send, octets.
pub(crate) fn sends(octets: &[u8; QOS]) -> u32 {
    match int(octets, 20) {
        // ATM_NONE: a leaf of a point-to-multipoint call, for example.
        _ if octets[0] == 0 => 0,
        sdu @ 1..=65_535 => sdu as u32,
        _ => 65_535,
    }
}

/// Largest SDU that a contract lets its owner receive; 0: any.
pub(crate) fn receives(octets: &[u8; QOS]) -> u16 {
    u16::try_from(int(octets, TRAFPRM + 20)).unwrap_or(0)
}

fn pairs(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Layer 2 of a B-LLI by its number, with what may follow: nothing, `m`ode and window, `u`ser information.
const LAYER_2: [(u8, &str, char); 14] = [
    (0x01, "iso1745", ' '),
    (0x02, "q291", ' '),
    (0x06, "x25_ll", 'm'),
    (0x07, "x25_ml", 'm'),
    (0x08, "lapb", ' '),
    (0x09, "hdlc_arm", 'm'),
    (0x0a, "hdlc_nrm", 'm'),
    (0x0b, "hdlc_abm", 'm'),
    (0x0c, "iso8802", ' '),
    (0x0d, "x75", ' '),
    (0x0e, "q922", 'm'),
    (0x10, "user", 'u'),
    (0x11, "iso7776", 'm'),
    (0x00, "", ' '),
];
/// The same of layer 3; `t`: a protocol identifier.
const LAYER_3: [(u8, &str, char); 9] = [
    (0x06, "x25", 's'),
    (0x07, "iso8208", 's'),
    (0x08, "x223", 's'),
    (0x09, "iso8473", ' '),
    (0x0a, "t70", ' '),
    (0x0b, "tr9577", 't'),
    (0x0c, "h310", ' '),
    (0x0d, "h321", ' '),
    (0x10, "user", 'u'),
];
/// Initial protocol identifier of SNAP. Source: ISO/IEC TR 9577.
const SNAP: u8 = 0x80;

fn modes(mode: u8, size: u8, window: u8) -> String {
    let mut text = match mode {
        1 => ",mode=norm".to_owned(),
        2 => ",mode=ext".to_owned(),
        _ => String::new(),
    };
    if size > 0 {
        text += &format!(",size={size}");
    }
    if window > 0 {
        text += &format!(",window={window}");
    }
    text
}

/// The access point of a `struct atm_sap` as text; `None` if it has something that a text cannot say. Of several B-LLI
/// the first counts.
pub(crate) fn sap_text(octets: &[u8; SAP]) -> Option<String> {
    let mut parts = Vec::new();
    let length = usize::from(octets[1]).min(8);
    let info = &octets[2..2 + length];
    match octets[0] {
        0 => {}
        1 => parts.push(format!("bhli:iso={}", pairs(info))),
        2 => parts.push(format!("bhli:user={}", pairs(info))),
        3 => parts.push(format!("bhli:hlp={}", pairs(&octets[2..6]))),
        4 => parts.push(format!(
            "bhli:oui={},id={}",
            pairs(&octets[2..5]),
            pairs(&octets[5..9])
        )),
        _ => return None,
    }
    let blli = &octets[LAYER..2 * LAYER];
    let mut layers = Vec::new();
    if blli[0] != 0 {
        let (_, name, form) = LAYER_2.iter().find(|(number, ..)| *number == blli[0])?;
        layers.push(match form {
            'm' => format!("l2={name}{}", modes(blli[1], 0, blli[2])),
            'u' => format!("l2={name},info={}", blli[1]),
            _ => format!("l2={name}"),
        });
    }
    if blli[3] != 0 {
        let (_, name, form) = LAYER_3.iter().find(|(number, ..)| *number == blli[3])?;
        layers.push(match (form, blli[4]) {
            ('s', mode) => format!("l3={name}{}", modes(mode, blli[5], blli[6])),
            ('u', info) => format!("l3={name},info={info}"),
            ('t', SNAP) => format!(
                "l3={name},ipi=snap,oui={},pid={}",
                pairs(&blli[5..8]),
                pairs(&blli[8..10])
            ),
            ('t', ipi) => format!("l3={name},ipi={ipi}"),
            _ => format!("l3={name}"),
        });
    }
    if !layers.is_empty() {
        parts.push(format!("blli:{}", layers.join(",")));
    }
    Some(parts.join(","))
}

/// The B-HLI of an access point in a text, as a `struct atm_sap`. A B-LLI is left out.
pub(crate) fn sap_octets(text: &str) -> [u8; SAP] {
    let mut octets = [0; SAP];
    let sap: Option<Sap> = text.parse().ok();
    if let Some(bhli) = sap.and_then(|sap| sap.bhli) {
        let info = Bhli::info(&bhli);
        octets[0] = bhli.kind() + 1;
        octets[1] = info.len() as u8;
        octets[2..2 + info.len()].copy_from_slice(info);
    }
    octets
}

/// The label in a `struct sockaddr_atmpvc`: interface, VPI, VCI.
pub(crate) fn pvc(octets: &[u8]) -> Option<(i16, i16, i32)> {
    let short = |at: usize| {
        let two = octets.get(at..at + 2)?.try_into().ok()?;
        Some(i16::from_ne_bytes(two))
    };
    (octets.len() >= PVC_ADDRESS).then_some(())?;
    Some((short(4)?, short(6)?, int(octets, 8)))
}

/// A `struct sockaddr_atmpvc` with the label `VPI.VCI`.
pub(crate) fn pvc_octets(label: &str) -> [u8; PVC_ADDRESS] {
    let mut octets = [0; PVC_ADDRESS];
    octets[..2].copy_from_slice(&(ATMPVC as u16).to_ne_bytes());
    if let Some((vpi, vci)) = label.split_once('.') {
        let vpi: i16 = vpi.parse().unwrap_or(0);
        octets[6..8].copy_from_slice(&vpi.to_ne_bytes());
        put(&mut octets, 8, vci.parse().unwrap_or(0));
    }
    octets
}

/// The address in a `struct sockaddr_atmsvc` in hex digits; empty if it has none. `None` if it has an E.164 number
/// only, or is too short.
pub(crate) fn svc(octets: &[u8]) -> Option<String> {
    let private = octets.get(4..24)?;
    let public = octets.get(24).copied().unwrap_or(0);
    match private.iter().all(|octet| *octet == 0) {
        true if public != 0 => None,
        true => Some(String::new()),
        false => Some(pairs(private)),
    }
}

/// A `struct sockaddr_atmsvc` with an address in hex digits.
pub(crate) fn svc_octets(address: &str) -> [u8; SVC_ADDRESS] {
    let mut octets = [0; SVC_ADDRESS];
    octets[..2].copy_from_slice(&(ATMSVC as u16).to_ne_bytes());
    for (place, pair) in octets[4..24].iter_mut().zip(address.as_bytes().chunks(2)) {
        let digits = str::from_utf8(pair).unwrap_or_default();
        *place = u8::from_str_radix(digits, 16).unwrap_or(0);
    }
    octets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contracts_survive_as_far_as_the_structure_has_them() {
        for text in [
            "ubr,aal5:sdu=9180",
            "cbr,aal5:max_pcr=1000,sdu=48",
            "cbr,aal5:tx:max_pcr=1000,sdu=48,rx:none",
            "ubr,aal5:tx:max_pcr=77,sdu=4096,rx:sdu=100",
            "ubr,aal0:max_pcr=77",
        ] {
            let octets = qos_octets(text).unwrap();
            let back = qos_text(&octets).unwrap();
            let same = |text: &str| text.parse::<ConnectionQos>().unwrap();
            assert_eq!(same(&back), same(text), "{back}");
        }
        let mut raw = qos_octets("ubr").unwrap();
        // ATM_AAL34 has no service.
        raw[80] = 3;
        assert_eq!(qos_text(&raw), None);
        let both = qos_octets("ubr,aal5:tx:sdu=100,rx:sdu=200").unwrap();
        assert_eq!((sends(&both), receives(&both)), (100, 200));
    }

    /// The access points of the tools of linux-atm.
    #[test]
    fn access_points_become_texts_that_the_service_understands() {
        let mut octets = [0; SAP];
        assert_eq!(sap_text(&octets), Some(String::new()));
        octets[..10].copy_from_slice(b"\x02\x08FORE_ATM");
        let sap: Sap = sap_text(&octets).unwrap().parse().unwrap();
        assert_eq!(sap.bhli, Some(Bhli::SVC));
        assert_eq!(sap_octets(&sap.to_string()), octets);
        octets[..10].copy_from_slice(&[4, 0, 0x00, 0x60, 0xd7, 1, 0, 0, 3, 0]);
        let sap: Sap = sap_text(&octets).unwrap().parse().unwrap();
        assert_eq!(sap.bhli, Some(Bhli::TTCP));
        // Classical IP: ISO 8802/2.
        let mut octets = [0; SAP];
        octets[10] = 0x0c;
        let sap: Sap = sap_text(&octets).unwrap().parse().unwrap();
        assert_eq!(sap, Sap::LLC);
        for (proto, name) in [(0x06, "x25"), (0x0b, "tr9577"), (0x10, "user")] {
            let mut octets = [0; SAP];
            octets[13] = proto;
            octets[14] = 1;
            let text = sap_text(&octets).unwrap();
            assert!(text.contains(name) && text.parse::<Sap>().is_ok(), "{text}");
        }
    }

    #[test]
    fn addresses_and_labels_survive() {
        let address = "4700918100000002a70000010002a703000100e0";
        assert_eq!(svc(&svc_octets(address)).as_deref(), Some(address));
        assert_eq!(svc(&[0; 44]).as_deref(), Some(""));
        assert_eq!(svc(&[0; 10]), None);
        assert_eq!(pvc(&pvc_octets("3.100")), Some((0, 3, 100)));
        assert_eq!(pvc(&[0; 11]), None);
        let qos = (SOL_ATM & 0x1ff) << 22 | 2 << 16 | QOS as i32;
        assert_eq!(option::number(qos), Some(option::QOS));
        assert_eq!(option::number(7), None);
    }
}
