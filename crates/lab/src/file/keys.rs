//! The sections whose keys set parameters of protocols, and where they stand.

use crate::model::TcpParams;
use crate::parameter::Keys;
use aerostat_node::ip::router::ArpParams;
use aerostat_node::switch::{ConnectionQueue, PortParams, QueueParams};
use aerostat_proto::atp::Params as AtpParams;
use aerostat_proto::lane::{LecParams, Quotas, ServerParams};
use aerostat_proto::mpoa::mps::{self, MpsParams};
use aerostat_proto::mpoa::params::{MpcParams, MpcRanges};
use aerostat_proto::parameters::Value;
use aerostat_proto::uni::{Side, TimerValues, Version};
use aerostat_proto::{clip as classical, nhrp as next_hop, sscop as link};

pub(crate) fn mpoa() -> Keys {
    Keys::default()
        .of_role("Client", &MpcParams::DEFAULT)
        .of_role("Server", &MpsParams::DEFAULT)
        .without(["flow_frames", "flow_time"])
        .default_is("hold_down", "4 times retry_max")
        .text("flow_detect", flow_detect)
}

fn flow_detect() -> String {
    let MpcRanges {
        flow_frames: frames,
        flow_time: time,
        ..
    } = MpcParams::RANGES;
    format!(
        "Client: number of frames to one destination ({frames}) within a time ({time}) that makes a flow (p1, p2); \
         default {} frames per {}.",
        Value::from(frames.default),
        Value::from(time.default),
    )
}

pub(crate) fn nhrp() -> Keys {
    Keys::default().of_role("Client", &next_hop::client::Params::DEFAULT)
}

pub(crate) fn clip() -> Keys {
    Keys::of(&classical::Params::DEFAULT)
}

pub(crate) fn quota() -> Keys {
    Keys::of(&Quotas::DEFAULT)
}

pub(crate) fn lec() -> Keys {
    Keys::of(&LecParams::DEFAULT).otherwise("with LANE version 1", &LecParams::V1)
}

pub(crate) fn les() -> Keys {
    Keys::of(&ServerParams::DEFAULT)
}

pub(crate) fn arp() -> Keys {
    Keys::of(&ArpParams::DEFAULT)
}

pub(crate) fn atp() -> Keys {
    Keys::of(&AtpParams::DEFAULT)
        .without(["initial_round_trip", "ack_delay", "min_timer"])
        .default_is("mtu", "the largest SDU of the contract, at most 9180")
}

pub(crate) fn tcp() -> Keys {
    Keys::of(&TcpParams::DEFAULT)
        .default_is("send_buffer", "that of `buffer`, or of the profile")
        .default_is("receive_buffer", "that of `buffer`, or of the profile")
        .default_is("mss", "what the MTU holds")
        .default_is("nagle", "true for tcp, false for rr")
        .default_is("ack_every", "that of the profile")
        .default_is("delayed_ack", "that of the profile")
        .default_is("ack_tick", "that of the profile, or no such clock")
        .default_is("timestamps", "that of the profile")
        .default_is("ecn", "that of the profile")
        .default_is("window_scaling", "that of the profile")
        .default_is("initial_window", "that of the profile")
        .default_is("min_rto", "that of the profile")
        .default_is("sack", "that of the profile")
}

pub(crate) fn sscop() -> Keys {
    Keys::of(&link::Params::UNI)
}

pub(crate) fn uni() -> Keys {
    let user = |version| TimerValues::standard(Side::User, version);
    Keys::of(&TimerValues::DEFAULT)
        .otherwise("at a user", &user(Version::Uni31))
        .otherwise("at a user of UNI 4.0", &user(Version::Uni40))
}

pub(crate) fn port_limits() -> Keys {
    Keys::of(&PortParams::DEFAULT)
}

pub(crate) fn queues() -> Keys {
    Keys::of(&QueueParams::DEFAULT)
        .default_is("buffer", "as `limits: port:` says")
        .default_is("vc_buffer", "as `limits: port:` says")
        .default_is("guaranteed_buffer", "as `limits: port:` says")
        .default_is("guaranteed_vc_buffer", "as `limits: port:` says")
        .default_is("epd", "three quarters of `buffer`")
        .default_is("vc_epd", "three quarters of `vc_buffer`")
        .default_is("clp", "half of `buffer`")
        .default_is("vc_clp", "half of `vc_buffer`")
        .default_is("guaranteed_clp", "all of `guaranteed_buffer`")
        .default_is("guaranteed_vc_clp", "all of `guaranteed_vc_buffer`")
        .default_is("efci", "never")
        .default_is("vc_efci", "never")
}

pub(crate) fn connection_queue() -> Keys {
    Keys::of(&ConnectionQueue::DEFAULT)
        .default_is("buffer", "as the port says")
        .default_is("epd", "as the port says, or three quarters of `buffer`")
        .default_is("clp", "as the port says, or half of `buffer`")
        .default_is("efci", "as the port says; 0: never")
}

pub(crate) fn mps_limits() -> Keys {
    Keys::of(&mps::Limits::DEFAULT)
}

pub(crate) fn nhrp_limits() -> Keys {
    Keys::of(&next_hop::client::Limits::DEFAULT)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::field::Own;
    use crate::file::pseudowire::SduWireFile;
    use crate::file::timing::CompetingFile;
    use crate::file::*;

    /// A section with such keys.
    pub(crate) struct Section {
        /// Its name in the schema.
        pub(crate) name: &'static str,
        /// Where it stands; `NAME` stands for any name.
        pub(crate) path: &'static str,
        pub(crate) keys: fn() -> Keys,
    }

    const fn section(name: &'static str, path: &'static str, keys: fn() -> Keys) -> Section {
        Section { name, path, keys }
    }

    pub(crate) const SECTIONS: [Section; 16] = [
        section("MpoaParams", "mpoa", mpoa),
        section("NhrpFile", "nhrp", nhrp),
        section("LecTimersFile", "timers.lec", lec),
        section("LesTimersFile", "timers.les", les),
        section("ArpTimersFile", "timers.arp", arp),
        section("TcpFile", "hosts.NAME.tcp", tcp),
        section("AtpFile", "hosts.NAME.sockets.0.atp", atp),
        section("SscopTimersFile", "timers.sscop", sscop),
        section("UniTimersFile", "timers.uni", uni),
        section("QuotaFile", "lane.quota", quota),
        section("LisFile", "clip.NAME", clip),
        section("PortLimitsFile", "limits.port", port_limits),
        section("QueuesFile", "links.NAME.queues", queues),
        section("ConnectionQueueFile", "pvcs.0.queue", connection_queue),
        section("MpsLimitsFile", "limits.mps", mps_limits),
        section("NhrpLimitsFile", "limits.nhrp", nhrp_limits),
    ];

    type Owns = fn() -> Vec<Own>;

    /// Sections with keys that have a default or a range of their own.
    const OWN: [(&str, &str, Owns); 32] = [
        ("", "the lab", LabFile::own),
        ("OccupancyFile", "`occupancy`", OccupancyFile::own),
        ("SwitchFile", "`switches.NAME`", SwitchFile::own),
        ("LinkOptions", "`links.NAME`", LinkOptions::own),
        ("FramesFile", "`links.NAME.ethernet`", FramesFile::own),
        ("TunnelFile", "`links.NAME.tunnels.VPI`", TunnelFile::own),
        (
            "OutsideOptions",
            "links out of the lab",
            OutsideOptions::own,
        ),
        ("UdpFile", "`udp` of such a link", UdpFile::own),
        (
            "EthernetFile",
            "`ethernet` of such a link",
            EthernetFile::own,
        ),
        ("MplsFile", "`mpls` of such a link", MplsFile::own),
        ("L2tpFile", "`l2tp` of such a link", L2tpFile::own),
        ("LaneFile", "`lane`", LaneFile::own),
        ("ElanFile", "`lane.elans.NAME`", ElanFile::own),
        ("LisFile", "`clip.NAME`", LisFile::own),
        ("CheckFile", "`checks.0`", CheckFile::own),
        ("LineFile", "`lines.NAME`", LineFile::own),
        ("PvcFile", "`pvcs.0`", PvcFile::own),
        ("SduWireFile", "`pvcs.0.pseudowire`", SduWireFile::own),
        ("RouterFile", "`routers.NAME`", RouterFile::own),
        ("HostFile", "`hosts.NAME`", HostFile::own),
        ("LecFile", "`hosts.NAME.lec`", LecFile::own),
        ("CpuFile", "`hosts.NAME.cpu`", CpuFile::own),
        (
            "InterruptionsFile",
            "`hosts.NAME.cpu.interruptions`",
            InterruptionsFile::own,
        ),
        ("ManagerFile", "`hosts.NAME.manager`", ManagerFile::own),
        (
            "CompetingFile",
            "`hosts.NAME.manager.competing`",
            CompetingFile::own,
        ),
        ("AdapterFile", "`hosts.NAME.adapter`", AdapterFile::own),
        ("ClockFile", "`hosts.NAME.clock`", ClockFile::own),
        ("SocketFile", "`hosts.NAME.sockets.0`", SocketFile::own),
        ("AtpFile", "`hosts.NAME.sockets.0.atp`", AtpFile::own),
        ("CableFile", "`hosts.NAME.ethernet`", CableFile::own),
        (
            "PortFile",
            "`hosts.NAME.ethernet.ports.NAME`",
            PortFile::own,
        ),
        ("TrafficFile", "`traffic.NAME`", TrafficFile::own),
    ];

    /// The tables of keys of sections.
    fn own_tables() -> String {
        let (schema, mut text) = (crate::schema(), String::new());
        for (name, of, own) in OWN {
            let section = if name.is_empty() {
                &schema
            } else {
                &schema["$defs"][name]
            };
            let row = |key: &Own| {
                let meaning = section["properties"][key.name()]["description"].as_str();
                key.row(meaning.unwrap_or_default())
            };
            text += &format!(
                "\nKeys of {of} with a range or a default:\n\n| key | meaning | range | default |\n|---|---|---|---|\n"
            );
            for row in own().iter().filter_map(row) {
                text += &format!("| {} |\n", row.join(" | "));
            }
        }
        text
    }

    #[test]
    fn every_section_with_defaults_or_ranges_has_a_table() {
        let schema = crate::schema();
        let with_default = |section: &serde_json::Value| {
            let keys = section["properties"].as_object().into_iter().flatten();
            let mut texts = keys.filter_map(|(_, key)| key["description"].as_str());
            texts.any(|text| text.contains("; default ") || text.contains(" default "))
        };
        let known = |name: &str| {
            OWN.iter().any(|(own, ..)| *own == name) || SECTIONS.iter().any(|own| own.name == name)
        };
        let defs = schema["$defs"].as_object().unwrap();
        let missing = defs
            .iter()
            .filter(|(name, section)| with_default(section) && !known(name));
        let missing: Vec<&String> = missing.map(|(name, _)| name).collect();
        assert_eq!(missing, ["StandbyFile"], "its default is a series");
    }

    /// The tables of the page.
    fn tables() -> String {
        let mut text = String::new();
        for Section { path, keys, .. } in SECTIONS {
            text += &format!(
                "\nKeys of `{path}`:\n\n| key | meaning | range | default |\n|---|---|---|---|\n"
            );
            for row in keys().rows() {
                text += &format!("| {} |\n", row.join(" | "));
            }
        }
        text + &own_tables() + "\n"
    }

    #[test]
    fn the_page_of_lab_files_has_the_keys_ranges_and_defaults_of_all_parameters() {
        const BEGIN: &str =
            "<!-- tables of parameters: written by the tests with UPDATE_EXPECTED=1 -->\n";
        const END: &str = "<!-- end of the tables -->\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lab-file.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (before, rest) = page.split_once(BEGIN).expect("the tables of parameters");
        let (told, after) = rest.split_once(END).expect("the end of the tables");
        let tables = tables();
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            std::fs::write(path, format!("{before}{BEGIN}{tables}{END}{after}")).unwrap();
            return;
        }
        assert!(told == tables, "run the tests with UPDATE_EXPECTED=1");
    }
}
