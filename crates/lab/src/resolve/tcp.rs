//! The section `tcp` of hosts.

use crate::diag::{Diagnostics, Span};
use crate::field::Optional as _;
use crate::file::{HostFile, TcpFile};
use crate::model::{ByKernel, Congestion, GivenKey, KEYS, Tcp, TcpParams};
use aerostat_node::ip::tcp::Recovery;
use aerostat_proto::parameters::Octets;

/// The largest window without window scaling, octets, and one more: a buffer of 64 KiB never announces all of it.
const UNSCALED: usize = 64 << 10;

/// The TCP settings of a host.
pub(super) fn of(host: &HostFile, d: &mut Diagnostics) -> Tcp {
    let Some(file) = &host.tcp else {
        return Tcp::USUAL;
    };
    let tcp = values(file);
    let at = |key: &str| file.given.at(key);
    contradictions(&tcp, at, d);
    followed(host, &tcp, at, d);
    let given = file.given.iter().map(|(name, at)| {
        let place = d.locate(at).to_string();
        GivenKey { name, place }
    });
    Tcp {
        given: given.collect(),
        ..tcp
    }
}

/// The values of a section, without its keys.
fn values(file: &TcpFile) -> Tcp {
    let mut params = TcpParams::DEFAULT;
    if let Some(buffer) = file.buffer.plain() {
        params.send_buffer = Octets(buffer);
        params.receive_buffer = Octets(buffer);
    }
    file.given.apply(&mut params);
    Tcp {
        profile: file.profile.plain().unwrap_or_default(),
        congestion: file.congestion.plain(),
        params,
        given: Vec::new(),
    }
}

fn contradictions(tcp: &Tcp, at: impl Fn(&str) -> Option<Span>, d: &mut Diagnostics) {
    let delays = [at("delayed_ack"), at("ack_tick")];
    if let (Some(first), Some(second)) = delays.into() {
        d.error(
            first.max(second),
            "a delay and a tick: an acknowledgement waits for one of them",
        )
        .see(first.min(second), "the other one is here");
    }
    if let (1, Some(every), Some(delay)) = (
        tcp.params.ack_every,
        at("ack_every"),
        delays[0].or(delays[1]),
    ) {
        d.error(delay, "with 'ack_every: 1' no acknowledgement is delayed")
            .see(every, "each segment is acknowledged at once here");
    }
    large_windows(tcp, &at, d);
    if let Some(sack) = at("sack").filter(|_| tcp.params.sack)
        && tcp.profile.params().congestion.recovery == Recovery::Tahoe
    {
        let text = format!(
            "a sender with profile '{}' sends all again after a loss, whatever selective acknowledgements say",
            tcp.profile
        );
        d.warning(sack, text)
            .hint("other profiles repair by them; as a receiver the host gives them");
    }
}

/// A receive buffer that no window of the host can offer.
fn large_windows(tcp: &Tcp, at: impl Fn(&str) -> Option<Span>, d: &mut Diagnostics) {
    let given = at("receive_buffer").or(at("buffer"));
    let Some(buffer) = given.filter(|_| tcp.params.receive_buffer.0 > UNSCALED) else {
        return;
    };
    let text = "without window scaling a window has at most 65535 octets";
    match at("window_scaling") {
        Some(scaling) if !tcp.params.window_scaling => {
            d.error(buffer, text)
                .see(scaling, "it is switched off here");
        }
        None if !tcp.profile.params().window_scaling => {
            let profile = format!("profile '{}' has none", tcp.profile);
            d.warning(buffer, format!("{text}, and {profile}"))
                .hint("'window_scaling: true' at both hosts of a connection");
        }
        _ => {}
    }
}

/// Reports keys that this host cannot follow.
fn followed(host: &HostFile, tcp: &Tcp, at: impl Fn(&str) -> Option<Span>, d: &mut Diagnostics) {
    let kernel = host.kernel.as_ref().is_some_and(|kernel| kernel.value);
    for follows in &KEYS {
        let Some(at) = at(follows.key) else {
            continue;
        };
        if kernel {
            if let ByKernel::Never(why) = follows.kernel {
                d.warning(
                    at,
                    format!("a Linux kernel does not follow {}: {why}", follows.key),
                )
                .hint("without 'kernel: true', and in virtual time, the host follows it");
            }
        } else if follows.key == "congestion" && of_kernels(tcp) {
            d.error(
                at,
                "congestion control of embedded hosts is cubic, reno or none",
            )
            .hint("a host with 'kernel: true' has others, with 'aerostat up'");
        }
    }
    if kernel
        && tcp.congestion == Some(Congestion::None)
        && let Some(at) = at("congestion")
    {
        d.error(at, "a Linux kernel has no TCP without congestion control");
    }
}

/// True if only kernels have the congestion control.
const fn of_kernels(tcp: &Tcp) -> bool {
    matches!(tcp.congestion, Some(Congestion::Kernel(_)))
}

/// Keys of kernel hosts that a run in virtual time does not follow.
pub(super) fn in_virtual_time(host: &HostFile) -> Vec<(Span, String)> {
    let kernel = host.kernel.as_ref().is_some_and(|kernel| kernel.value);
    let Some(file) = host.tcp.as_ref().filter(|_| kernel) else {
        return Vec::new();
    };
    let tcp = values(file);
    let all = file.given.iter().filter_map(|(key, at)| {
        let follows = KEYS.iter().find(|follows| follows.key == key)?;
        let text = "in virtual time congestion control is cubic, reno or none; this run has cubic";
        (follows.key == "congestion" && of_kernels(&tcp)).then(|| (at, text.to_owned()))
    });
    all.collect()
}

/// Warns of a segment size that the MTU of the host's network does not reach.
pub(super) fn fits(tcp: &Tcp, host: &HostFile, mtu: u16, d: &mut Diagnostics) {
    const HEADERS: u16 = 40;
    let mss = host.tcp.as_ref().and_then(|file| file.given.at("mss"));
    let most = mtu.saturating_sub(HEADERS);
    if let Some(at) = mss.filter(|_| tcp.params.mss > most) {
        let text = format!("an IP packet of {mtu} octets holds no segment above {most} octets");
        d.warning(at, text);
    }
}

#[cfg(test)]
mod tests {
    use crate::model::{NodeKind, Tcp};
    use crate::resolve::tests::{SMALL, told};
    use aerostat_node::ip::tcp::{
        AckDelay, AckPush, Floor, Growth, InitialWindow, Profile, Recovery, TcpOptions,
    };
    use aerostat_proto::Duration;

    /// Findings about a host with this section; errors stop at the first line.
    fn said(section: &str, kernel: &str) -> String {
        told(&lab(section, kernel))
    }

    fn lab(section: &str, kernel: &str) -> String {
        let host = format!("ip: 10.1.0.10, tcp: {{ {section} }}{kernel}");
        SMALL.replace("ip: 10.1.0.10", &host)
    }

    fn tcp(section: &str) -> Tcp {
        let checked = crate::parse("t.atm.yml", &lab(section, ""), &[]);
        let lab = checked.unwrap_or_else(|d| panic!("{d}")).lab;
        let id = lab.find("x").expect("x");
        match &lab.node(id).kind {
            NodeKind::Host(host) => Tcp::clone(&host.tcp),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn keys_change_the_profile_one_by_one() {
        let usual = tcp("").options();
        assert_eq!(usual, TcpOptions::of(Profile::Linux));
        assert_eq!(usual, Tcp::USUAL.options());
        for profile in Profile::ALL {
            let named = tcp(&format!("profile: {profile}")).options();
            assert_eq!(named, TcpOptions::of(profile));
        }
        let buffers = tcp("buffer: 32KiB, receive_buffer: 9136").options();
        let expected = usual.with_send_buffer(32_768).with_receive_buffer(9136);
        assert_eq!(buffers, expected);
        let text = "profile: bsd-4.3, congestion: none, mss: 512, nagle: false, ack_tick: 100ms, timestamps: true, \
            window_scaling: true, sack: true, initial_window: 3, min_rto: 300ms";
        let mut expected = TcpOptions::of(Profile::Bsd43);
        expected.nagle = Some(false);
        let params = &mut expected.params;
        params.congestion.growth = Growth::Off;
        params.congestion.initial_window = InitialWindow::Segments(3);
        params.timers.floor = Floor::Timer(Duration::from_millis(300));
        params.mss = 512;
        params.receive.ack_delay = AckDelay::Tick(Duration::from_millis(100));
        (params.timestamps, params.window_scaling, params.sack) = (true, true, true);
        assert_eq!(tcp(text).options(), expected);
        let mut expected = usual;
        expected.params.receive.ack_delay = AckDelay::Never;
        expected.params.receive.quick_acks = 0;
        expected.params.receive.ack_push = AckPush::Never;
        expected.params.receive.ack_every = 1;
        assert_eq!(tcp("ack_every: 1").options(), expected);
        let repair = |text| tcp(text).options().params.congestion.recovery;
        assert_eq!(repair("profile: irix-5"), Recovery::Reno);
        assert_eq!(repair("profile: irix-5, sack: true"), Recovery::Sack);
        assert_eq!(repair("profile: newreno, sack: true"), Recovery::Sack);
        assert_eq!(repair("profile: tahoe, sack: true"), Recovery::Tahoe);
        assert_eq!(repair("sack: true"), Recovery::Rack);
        for (section, name) in [
            ("", "linux cubic"),
            ("congestion: reno", "linux reno"),
            ("profile: irix-5", "irix-5 reno (mostly assumed)"),
        ] {
            assert_eq!(tcp(section).embedded_name(), name);
        }
        let place = tcp("congestion: reno").place("congestion").to_owned();
        assert!(place.starts_with("t.atm.yml:"), "{place}");
    }

    #[test]
    fn what_a_host_cannot_follow_is_said_with_the_host_that_can() {
        let (section, says) = ("congestion: vegas", "is cubic, reno or none");
        let text = said(section, "");
        assert!(text.contains(says) && text.contains("error:"), "{text}");
        assert!(
            text.contains("a host with 'kernel: true' has others"),
            "{text}"
        );
        assert_eq!(said(section, ", kernel: true"), "", "{section}");
        let checked = crate::parse("t.atm.yml", &lab(section, ", kernel: true"), &[]).unwrap();
        let text = checked.in_virtual_time().warnings.to_string();
        assert!(
            text.contains("in virtual time") && text.contains(says),
            "{text}"
        );
        for section in [
            "min_rto: 200ms",
            "sack: false",
            "initial_window: 2",
            "congestion: none",
        ] {
            assert_eq!(said(section, ""), "", "{section}");
        }
        let text = said("profile: linux-3", "");
        assert!(
            text.contains("linux-2.2") && text.contains("unicos-8"),
            "{text}"
        );
        for section in [
            "nagle: false",
            "delayed_ack: 200ms",
            "ack_tick: 200ms",
            "profile: reno",
        ] {
            let text = said(section, ", kernel: true");
            assert!(
                text.contains("warning: a Linux kernel does not follow"),
                "{text}"
            );
            assert_eq!(said(section, ""), "", "{section}");
        }
        let text = said("congestion: none", ", kernel: true");
        assert!(text.contains("no TCP without congestion control"), "{text}");
    }

    #[test]
    fn contradictions_and_sizes_are_found() {
        for (section, says) in [
            ("ack_every: 3", "ack_every is 1 to 2"),
            (
                "ack_every: 1, delayed_ack: 200ms",
                "no acknowledgement is delayed",
            ),
            (
                "delayed_ack: 200ms, ack_tick: 200ms",
                "waits for one of them",
            ),
            (
                "window_scaling: false, receive_buffer: 128KiB",
                "at most 65535 octets",
            ),
            (
                "window_scaling: false, buffer: 128KiB",
                "at most 65535 octets",
            ),
            (
                "profile: newreno, receive_buffer: 128KiB",
                "at most 65535 octets, and profile 'newreno' has none",
            ),
            (
                "profile: tahoe, sack: true",
                "sends all again after a loss, whatever",
            ),
            ("buffer: 1KiB", "buffer is 2KiB to 64MiB"),
            ("send_buffer: 65MiB", "send_buffer is 2KiB to 64MiB"),
            ("mss: 63", "mss is 64 to 65481"),
            ("mss: 9000", "holds no segment above 1460 octets"),
            (
                "congestion: fast",
                "expected cubic, reno or none, or for kernel hosts bbr",
            ),
        ] {
            let text = said(section, "");
            assert!(text.contains(says), "{section}: {text}");
        }
        for section in [
            "window_scaling: false, buffer: 64KiB",
            "profile: newreno, send_buffer: 128KiB",
            "profile: newreno, buffer: 128KiB, window_scaling: true",
            "profile: tahoe, sack: false",
        ] {
            assert_eq!(said(section, ""), "", "{section}");
        }
    }

    #[test]
    fn a_write_is_for_tcp_and_has_a_size() {
        let with = |flow: &str, section: &str| {
            let text = lab(section, "");
            let text = format!("{text}traffic: [{{ from: x, to: y, {flow} }}]\n");
            crate::parse("t.atm.yml", &text, &[])
        };
        for (flow, says) in [
            ("kind: rr, write: 10", "write is for tcp"),
            ("kind: udp, rate: 1pps, bytes: 10", "bytes is for tcp"),
            ("kind: tcp, bytes: 0", "bytes is 1 to 1024GiB"),
            ("kind: tcp, write: 0", "write is 1 to 1048576"),
            ("kind: tcp, write: 2MiB", "write is 1 to 1048576"),
            ("kind: tcp, write: 10", "holds more than 65536 such writes"),
        ] {
            let d = with(flow, "buffer: 1MiB").expect_err("an error");
            assert!(d.to_string().contains(says), "{d}");
        }
        let checked = with("kind: tcp, write: 8KiB", "").expect("a lab");
        let flow = &checked.lab.traffic[0];
        assert_eq!(flow.write, Some(8192));
        assert_eq!(checked.lab.tcp_of(flow).as_deref(), Some("linux cubic"));
        let checked = with("kind: tcp", "congestion: reno").expect("a lab");
        let flow = &checked.lab.traffic[0];
        assert_eq!(checked.lab.tcp_of(flow).as_deref(), Some("linux reno"));
        let plain = format!("{SMALL}traffic: [{{ from: x, to: y, kind: tcp }}]\n");
        let lab = crate::parse("t.atm.yml", &plain, &[]).expect("a lab").lab;
        assert_eq!(lab.tcp_of(&lab.traffic[0]).as_deref(), Some("linux cubic"));
    }
}
