//! Messages as octets: a type in two octets, then the fields one after the other, numbers big endian.
//!
//! Options are 0, or 1 and the value; lists and texts have their length in two octets before them. What a frame
//! can hold bounds every list. Decoding takes nothing but the exact form, so that encoding it again gives the
//! same octets.

use super::{ElanInfo, FromMpcd, Greeting, SocketEvent, SocketRequest, ToMpcd};
use crate::mpoa::messages::{EgressInfo, IngressInfo, PurgeScope, ToDaemon, ToKernel};
use crate::mpoa::mpc::{ByCode, MpcConfig, MpcCounters, MpcLimits, StaticMps};
use crate::mpoa::params::MpcParams;
use crate::{Cause, ConnId, Duration, Trace};
use aerostat_wire::Reader;
use aerostat_wire::mpoa::{FlowFilter, QosEntry};
use aerostat_wire::{AtmAddress, DecodeError, MacAddr, Qos, ServiceCategory, TrafficParams, Vc};
use core::net::Ipv4Addr;

/// Octets of the longest text; a longer one is cut.
pub const TEXT_MAX: usize = 1024;

/// Names of traces and of their fields that a daemon uses. Others become the first one, or are left out.
pub(super) const NAMES: [&str; 25] = [
    "mpc.other",
    "mpc.control.down",
    "mpc.control.ignored",
    "mpc.control.up",
    "mpc.down",
    "mpc.error",
    "mpc.imposition.accepted",
    "mpc.imposition.refused",
    "mpc.imposition.withdrawn",
    "mpc.keepalive.dead",
    "mpc.purge.data_plane",
    "mpc.purge.sent",
    "mpc.resolution.retry",
    "mpc.resolution.sent",
    "mpc.up",
    "cache_id",
    "code",
    "destination",
    "id",
    "ingress",
    "mps",
    "peer",
    "tag",
    "vc",
    "itf",
];

/// A message that stands alone in a frame.
pub trait Message: Sized {
    /// The frame.
    fn encode(&self) -> Vec<u8>;
    /// The message of a frame.
    ///
    /// # Errors
    /// If it is not exactly one message.
    fn decode(frame: &[u8]) -> Result<Self, DecodeError>;
}

macro_rules! messages {
    ($($kind:ident),+) => {$(
        impl Message for $kind {
            fn encode(&self) -> Vec<u8> {
                let mut frame = Vec::new();
                self.put(&mut frame);
                frame
            }
            fn decode(frame: &[u8]) -> Result<Self, DecodeError> {
                let mut from = Reader::new(frame);
                let message = Self::take(&mut from, "message")?;
                from.finish("message")?;
                Ok(message)
            }
        }
    )+};
}
messages!(Greeting, ToMpcd, FromMpcd);

/// A value inside a message.
pub(super) trait Field: Sized {
    /// Appends it.
    fn put(&self, to: &mut Vec<u8>);
    /// Takes it.
    ///
    /// # Errors
    /// If the octets are none.
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError>;
    /// Some value; for tests of all messages.
    #[cfg(test)]
    fn sample(random: &mut super::tests::Random) -> Self;
}

macro_rules! numbers {
    ($($number:ident $bits:literal),+) => {$(
        impl Field for $number {
            fn put(&self, to: &mut Vec<u8>) {
                to.extend(self.to_be_bytes());
            }
            fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
                from.array(name).map(Self::from_be_bytes)
            }
            #[cfg(test)]
            fn sample(random: &mut super::tests::Random) -> Self {
                (random.next() >> (64 - $bits)) as Self
            }
        }
    )+};
}
numbers!(u8 8, u16 16, u32 32, u64 64);

impl Field for bool {
    fn put(&self, to: &mut Vec<u8>) {
        u8::from(*self).put(to);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        let at = from.offset();
        match from.u8(name)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(DecodeError::value(name, at, other.into())),
        }
    }
    #[cfg(test)]
    fn sample(random: &mut super::tests::Random) -> Self {
        random.next() & 1 == 1
    }
}

/// Numbers of interfaces and bounds: four octets.
impl Field for usize {
    fn put(&self, to: &mut Vec<u8>) {
        u32::try_from(*self).unwrap_or(u32::MAX).put(to);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        from.u32(name).map(|number| number as Self)
    }
    #[cfg(test)]
    fn sample(random: &mut super::tests::Random) -> Self {
        u32::sample(random) as Self
    }
}

/// Nanoseconds.
impl Field for Duration {
    fn put(&self, to: &mut Vec<u8>) {
        u64::try_from(self.as_nanos()).unwrap_or(u64::MAX).put(to);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        u64::take(from, name).map(Self::from_nanos)
    }
    #[cfg(test)]
    fn sample(random: &mut super::tests::Random) -> Self {
        Self::from_nanos(random.next())
    }
}

macro_rules! wrapped {
    ($($outer:ident($inner:ty)),+) => {$(
        impl Field for $outer {
            fn put(&self, to: &mut Vec<u8>) {
                self.0.put(to);
            }
            fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
                Field::take(from, name).map(Self)
            }
            #[cfg(test)]
            fn sample(random: &mut super::tests::Random) -> Self {
                Self(Field::sample(random))
            }
        }
    )+};
}
wrapped!(
    AtmAddress([u8; 20]),
    MacAddr([u8; 6]),
    ConnId(u32),
    Cause(u8)
);

impl<const N: usize> Field for [u8; N] {
    fn put(&self, to: &mut Vec<u8>) {
        to.extend(self);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        from.array(name)
    }
    #[cfg(test)]
    fn sample(random: &mut super::tests::Random) -> Self {
        core::array::from_fn(|_| Field::sample(random))
    }
}

impl Field for Ipv4Addr {
    fn put(&self, to: &mut Vec<u8>) {
        self.octets().put(to);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        from.u32(name).map(Self::from_bits)
    }
    #[cfg(test)]
    fn sample(random: &mut super::tests::Random) -> Self {
        Self::from_bits(Field::sample(random))
    }
}

impl<T: Field> Field for Option<T> {
    fn put(&self, to: &mut Vec<u8>) {
        self.is_some().put(to);
        if let Some(value) = self {
            value.put(to);
        }
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        bool::take(from, name)?
            .then(|| T::take(from, name))
            .transpose()
    }
    #[cfg(test)]
    fn sample(random: &mut super::tests::Random) -> Self {
        bool::sample(random).then(|| T::sample(random))
    }
}

impl<T: Field> Field for Box<T> {
    fn put(&self, to: &mut Vec<u8>) {
        self.as_ref().put(to);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        T::take(from, name).map(Self::new)
    }
    #[cfg(test)]
    fn sample(random: &mut super::tests::Random) -> Self {
        Self::new(T::sample(random))
    }
}

/// At most 65 535 values; further ones are left out.
impl<T: Field> Field for Vec<T> {
    fn put(&self, to: &mut Vec<u8>) {
        let count = u16::try_from(self.len()).unwrap_or(u16::MAX);
        count.put(to);
        for value in self.iter().take(count.into()) {
            value.put(to);
        }
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        let count = from.u16(name)?;
        (0..count).map(|_| T::take(from, name)).collect()
    }
    #[cfg(test)]
    fn sample(random: &mut super::tests::Random) -> Self {
        let count = random.next() % 5;
        (0..count).map(|_| T::sample(random)).collect()
    }
}

impl<A: Field, B: Field> Field for (A, B) {
    fn put(&self, to: &mut Vec<u8>) {
        self.0.put(to);
        self.1.put(to);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        Ok((A::take(from, name)?, B::take(from, name)?))
    }
    #[cfg(test)]
    fn sample(random: &mut super::tests::Random) -> Self {
        (A::sample(random), B::sample(random))
    }
}

impl<A: Field, B: Field, C: Field> Field for (A, B, C) {
    fn put(&self, to: &mut Vec<u8>) {
        self.0.put(to);
        self.1.put(to);
        self.2.put(to);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        let (first, second) = (A::take(from, name)?, B::take(from, name)?);
        Ok((first, second, C::take(from, name)?))
    }
    #[cfg(test)]
    fn sample(random: &mut super::tests::Random) -> Self {
        (A::sample(random), B::sample(random), C::sample(random))
    }
}

impl Field for String {
    fn put(&self, to: &mut Vec<u8>) {
        let mut end = self.len().min(TEXT_MAX);
        while !self.is_char_boundary(end) {
            end -= 1;
        }
        (end as u16).put(to);
        to.extend(self.bytes().take(end));
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        let at = from.offset();
        let length = from.u16(name)?;
        if usize::from(length) > TEXT_MAX {
            return Err(DecodeError::value(name, at, length.into()));
        }
        let octets = from.take(name, length.into())?.to_vec();
        Self::from_utf8(octets).map_err(|_| DecodeError::value(name, at, 0))
    }
    #[cfg(test)]
    fn sample(random: &mut super::tests::Random) -> Self {
        format!("{:x} é", random.next())
    }
}

/// Counts by code.
impl Field for ByCode {
    fn put(&self, to: &mut Vec<u8>) {
        let all: Vec<(u16, u64)> = self.iter().map(|(code, count)| (*code, *count)).collect();
        all.put(to);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        let at = from.offset();
        let all = Vec::<(u16, u64)>::take(from, name)?;
        let ordered = all.iter().zip(all.iter().skip(1)).all(|(a, b)| a.0 < b.0);
        if !ordered {
            return Err(DecodeError::value(name, at, 0));
        }
        Ok(all.into_iter().collect())
    }
    #[cfg(test)]
    fn sample(random: &mut super::tests::Random) -> Self {
        Vec::<(u16, u64)>::sample(random).into_iter().collect()
    }
}

/// A structure is its fields in order.
macro_rules! record {
    ($kind:ident { $($field:ident),+ $(,)? }) => {
        impl Field for $kind {
            fn put(&self, to: &mut Vec<u8>) {
                let Self { $($field),+ } = self;
                $($field.put(to);)+
            }
            fn take(from: &mut Reader<'_>, _: &'static str) -> Result<Self, DecodeError> {
                Ok(Self { $($field: Field::take(from, stringify!($field))?),+ })
            }
            #[cfg(test)]
            fn sample(random: &mut super::tests::Random) -> Self {
                Self { $($field: Field::sample(random)),+ }
            }
        }
    };
}

/// A choice is its number in two octets, then the fields of what was chosen.
macro_rules! choice {
    ($kind:ident { $($number:literal $variant:ident $({ $($field:ident),+ })? $(($inner:ident))?;)+ }) => {
        impl Field for $kind {
            fn put(&self, to: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $({ $($field),+ })? $(($inner))? => {
                        <u16 as Field>::put(&$number, to);
                        $($($field.put(to);)+)?
                        $($inner.put(to);)?
                    })+
                }
            }
            fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
                let at = from.offset();
                Ok(match from.u16(name)? {
                    $($number => Self::$variant
                        $({ $($field: Field::take(from, stringify!($field))?),+ })?
                        $((Field::take(from, stringify!($inner))?))?,)+
                    other => return Err(DecodeError::value(name, at, other.into())),
                })
            }
            #[cfg(test)]
            fn sample(random: &mut super::tests::Random) -> Self {
                let all: &[fn(&mut super::tests::Random) -> Self] = &[
                    $(|_random| Self::$variant
                        $({ $($field: Field::sample(_random)),+ })?
                        $((super::tests::some!($inner, _random)))?,)+
                ];
                all[random.below(all.len())](random)
            }
        }
    };
}

record!(Vc { vpi, vci });
record!(Qos { tx, rx });
record!(TrafficParams {
    category,
    max_pcr,
    min_pcr,
    scr,
    mbs,
    max_cdv,
    max_sdu
});
record!(FlowFilter {
    destination,
    destination_port,
    protocol,
    source,
    source_port
});
record!(QosEntry { filter, qos });
record!(IngressInfo {
    mps,
    destination,
    filter,
    source,
    code,
    egress,
    tag,
    mtu,
    holding_s,
    category
});
record!(EgressInfo {
    mps,
    mps_ip,
    cache_id,
    tag,
    destination,
    prefix,
    ingress,
    itf,
    elan_id,
    header,
    holding_s
});
record!(MpcParams {
    frame_count,
    frame_time,
    ipv4,
    retry_initial,
    retry_max,
    hold_down
});
record!(MpcLimits {
    ingress,
    egress,
    shortcuts,
    control,
    mps,
    queue,
    qos
});
record!(StaticMps { itf, mac, control });
record!(MpcConfig {
    control,
    data,
    params,
    tag,
    enabled,
    split,
    itfs,
    static_mps,
    qos,
    limits,
    max_sdu,
    seed
});
record!(ElanInfo { itf, elan_id, mtu });
record!(MpcCounters {
    resolution_requests_sent,
    resolution_replies,
    imposition_requests,
    imposition_replies,
    egress_purges_sent,
    egress_purge_replies,
    keep_alives,
    triggers,
    purge_requests,
    purge_replies_sent,
    data_plane_purges,
    data_plane_purges_sent,
    errors,
    errors_sent,
    malformed,
    unknown_sender,
    unsolicited,
    mps_deaths,
    packets_received,
    octets_received,
    packets_sent,
    octets_sent,
    frames_to_lane,
    egress_misses,
    bad_packets,
    ingress_limit,
    egress_limit,
    qos_fallbacks,
    connection_limit,
    mps_limit,
    control_dropped,
    stray_events,
    daemon_refused,
});

choice!(ServiceCategory { 1 Cbr; 2 RtVbr; 3 NrtVbr; 4 Abr; 5 Gfr; 6 Ubr; });
choice!(PurgeScope { 1 Mps(mps); 2 Egress(egress); });

// Tables 4.1 and 4.2, with the numbers of the Linux client; 4xx are socket calls there, or not there at all.
choice!(ToKernel {
    101 TriggerReceived { mps, destination };
    102 ResolutionReply(info);
    103 IngressPurge { scope, destination, prefix };
    104 EgressPurged { mps, cache_id };
    105 MpsDeath { mps };
    106 CacheImposition(info);
    107 SetMpcControlAddress(address);
    108 SetMpsMacAddress { itf, mac, mps };
    109 CleanUpAndExit;
    110 SetParams(params);
    301 Reload;
    401 Attach { conn, peer, vc, qos, opened, flow };
    402 Detach { conn, cause };
    403 OpenFailed { egress, qos, flow, cause };
});
choice!(ToDaemon {
    201 SendResolutionRequest { info, qos };
    202 SetMpsControlAddress { itf, mps };
    203 SendResolutionRetry(info);
    204 StopKeepAlive { mps };
    205 EgressEntryRemoved { mps, cache_id };
    206 SendEgressPurge(info);
    207 Die;
    208 DataPlanePurge { conn, destination, prefix };
    209 OpenIngressSvc { info, qos };
    301 Reload;
    411 CloseShortcut { conn };
    412 Control { conn, packet };
    413 IngressEntry(info);
    414 EgressEntry(info);
});
choice!(SocketRequest {
    1 Listen { address, max_sdu };
    2 Unlisten { address };
    3 Connect { conn, calling, called, qos };
    4 Accept { conn };
    5 Release { conn, cause };
    6 Send { conn, sdu };
});
choice!(SocketEvent {
    1 Incoming { conn, calling, called, qos };
    2 Connected { conn, vc };
    3 Released { conn, cause };
    4 Received { conn, sdu };
});
choice!(Greeting {
    0x4101 Hello { version, node };
    0x4102 Welcome { version };
    0x4103 Refused(why);
});
choice!(ToMpcd {
    1 Start { config, params, elans };
    2 Stop { reload };
    3 ElanUp(elan);
    4 ElanDown { itf };
    5 Params(params);
    6 Message(message);
    7 Socket(event);
});
choice!(FromMpcd {
    1 Message(message);
    2 Socket(request);
    3 Discover { itf, mac };
    4 Trace(trace);
    5 Counted(counters);
    6 Watched(servers);
    7 Ended { restarts, exits };
});

/// Names are those of [`NAMES`], so that they can be compared with what the program itself says.
impl Field for Trace {
    fn put(&self, to: &mut Vec<u8>) {
        let known = |name: &&str| NAMES.contains(name);
        let name = Some(self.name).filter(known).unwrap_or(NAMES[0]);
        let fields = self.fields.iter().filter(|(key, _)| known(key));
        let fields: Vec<(String, String)> = fields
            .map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect();
        name.to_owned().put(to);
        self.text.put(to);
        fields.put(to);
        self.milestone.put(to);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        let at = from.offset();
        let known = |text: String| {
            let found = NAMES.iter().find(|known| **known == text);
            found.copied().ok_or(DecodeError::value(name, at, 0))
        };
        let name = known(String::take(from, name)?)?;
        let text = String::take(from, "text")?;
        let fields = Vec::<(String, String)>::take(from, "fields")?.into_iter();
        Ok(Self {
            name,
            text,
            fields: fields
                .map(|(key, value)| Ok((known(key)?, value)))
                .collect::<Result<_, _>>()?,
            milestone: bool::take(from, "milestone")?,
        })
    }
    #[cfg(test)]
    fn sample(random: &mut super::tests::Random) -> Self {
        let name = NAMES[random.below(NAMES.len())];
        Self::milestone(name, String::sample(random)).with("mps", random.next())
    }
}
