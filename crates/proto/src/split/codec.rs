//! Messages as octets: a type in two octets, then the fields one after the other, numbers big endian.
//!
//! An option is 0, or 1 and the value; lists and texts are preceded by their length in two octets. The size of a frame
//! bounds every list. Decoding accepts only the exact form, so encoding a decoded message gives the same octets.

use super::names;
use super::{Greeting, Role};
use crate::parameters::PerSecond;
use crate::trace::Fields;
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Duration, Instant, PartyId, Trace};
use aerostat_wire::q2931::UserData;
use aerostat_wire::{
    AtmAddress, Bhli, Blli, MacAddr, Qos, Sap, ServiceCategory, TrafficParams, Vc,
};
pub use aerostat_wire::{DecodeError, Reader};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::{BTreeMap, BTreeSet};

/// Octets of the longest text; a longer one is cut.
pub const TEXT_MAX: usize = 1024;

/// A message that stands alone in a frame.
pub trait Message: Field {
    /// The frame.
    fn encode(&self) -> Vec<u8> {
        // Most messages of a call fit.
        let mut frame = Vec::with_capacity(256);
        self.put(&mut frame);
        frame
    }
    /// The message of a frame.
    ///
    /// # Errors
    /// If the frame is not exactly one message.
    fn decode(frame: &[u8]) -> Result<Self, DecodeError> {
        let mut from = Reader::new(frame);
        let message = Self::take(&mut from, "message")?;
        from.finish("message")?;
        Ok(message)
    }
}

/// These values are messages: each stands alone in a frame.
#[macro_export]
macro_rules! split_messages {
    ($($kind:ident),+ $(,)?) => {$(
        impl $crate::split::codec::Message for $kind {}
    )+};
}
split_messages!(Greeting);

/// A value inside a message.
pub trait Field: Sized {
    /// Appends the value to the octets.
    fn put(&self, to: &mut Vec<u8>);
    /// Reads the value.
    ///
    /// # Errors
    /// If the octets are not a valid value.
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError>;
    /// Appends values.
    fn put_each(all: &[Self], to: &mut Vec<u8>) {
        all.iter().for_each(|value| value.put(to));
    }
    /// Reads `count` values.
    ///
    /// # Errors
    /// As [`Self::take`].
    fn take_each(
        from: &mut Reader<'_>,
        count: usize,
        name: &'static str,
    ) -> Result<Vec<Self>, DecodeError> {
        (0..count).map(|_| Self::take(from, name)).collect()
    }
}

/// Octets of SDUs are copied together.
impl Field for u8 {
    fn put(&self, to: &mut Vec<u8>) {
        to.push(*self);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        from.u8(name)
    }
    fn put_each(all: &[Self], to: &mut Vec<u8>) {
        to.extend_from_slice(all);
    }
    fn take_each(
        from: &mut Reader<'_>,
        count: usize,
        name: &'static str,
    ) -> Result<Vec<Self>, DecodeError> {
        from.take(name, count).map(<[Self]>::to_vec)
    }
}

macro_rules! numbers {
    ($($number:ident),+) => {$(
        impl Field for $number {
            fn put(&self, to: &mut Vec<u8>) {
                to.extend(self.to_be_bytes());
            }
            fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
                from.array(name).map(Self::from_be_bytes)
            }
        }
    )+};
}
numbers!(u16, u32, u64, i32);

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
}

/// Numbers of interfaces and bounds: four octets.
impl Field for usize {
    fn put(&self, to: &mut Vec<u8>) {
        u32::try_from(*self).unwrap_or(u32::MAX).put(to);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        from.u32(name).map(|number| number as Self)
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
}

/// Nanoseconds of the sender's own clock. The receiver has another clock: it compares such a time only with times of
/// the same sender.
impl Field for Instant {
    fn put(&self, to: &mut Vec<u8>) {
        self.as_nanos().put(to);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        u64::take(from, name).map(Self::from_nanos)
    }
}

/// Each of these values is encoded as the one value inside it.
#[macro_export]
macro_rules! split_wrapped {
    ($($outer:ident),+ $(,)?) => {$(
        impl $crate::split::codec::Field for $outer {
            fn put(&self, to: &mut Vec<u8>) {
                self.0.put(to);
            }
            fn take(
                from: &mut $crate::split::codec::Reader<'_>,
                name: &'static str,
            ) -> Result<Self, $crate::split::codec::DecodeError> {
                $crate::split::codec::Field::take(from, name).map(Self)
            }
        }
    )+};
}
split_wrapped!(AtmAddress, MacAddr, ConnId, PartyId, Cause, PerSecond);

impl<const N: usize> Field for [u8; N] {
    fn put(&self, to: &mut Vec<u8>) {
        to.extend(self);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        from.array(name)
    }
}

impl Field for Ipv4Addr {
    fn put(&self, to: &mut Vec<u8>) {
        self.octets().put(to);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        from.u32(name).map(Self::from_bits)
    }
}

impl Field for Ipv6Addr {
    fn put(&self, to: &mut Vec<u8>) {
        self.octets().put(to);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        from.array::<16>(name).map(Self::from)
    }
}

/// 4 or 6, and the address.
impl Field for IpAddr {
    fn put(&self, to: &mut Vec<u8>) {
        match self {
            Self::V4(address) => {
                4_u8.put(to);
                address.put(to);
            }
            Self::V6(address) => {
                6_u8.put(to);
                address.put(to);
            }
        }
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        let at = from.offset();
        match from.u8(name)? {
            4 => Ok(Self::V4(Field::take(from, name)?)),
            6 => Ok(Self::V6(Field::take(from, name)?)),
            other => Err(DecodeError::value(name, at, other.into())),
        }
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
}

/// 1 and the value, or 0 and the error.
impl<T: Field, E: Field> Field for Result<T, E> {
    fn put(&self, to: &mut Vec<u8>) {
        self.is_ok().put(to);
        match self {
            Ok(value) => value.put(to),
            Err(error) => error.put(to),
        }
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        Ok(match bool::take(from, name)? {
            true => Ok(T::take(from, name)?),
            false => Err(E::take(from, name)?),
        })
    }
}

impl<T: Field> Field for Box<T> {
    fn put(&self, to: &mut Vec<u8>) {
        self.as_ref().put(to);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        T::take(from, name).map(Self::new)
    }
}

/// A word of the program: one of [`names`].
impl Field for &'static str {
    fn put(&self, to: &mut Vec<u8>) {
        put_text(names::known(self).unwrap_or(names::OTHER), to);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        let at = from.offset();
        names::known(take_text(from, name)?).ok_or(DecodeError::value(name, at, 0))
    }
}

/// Appends the number of values and as many values: at most 65 535, further values are left out.
fn put_all<T>(
    all: impl ExactSizeIterator<Item = T>,
    to: &mut Vec<u8>,
    put: impl Fn(T, &mut Vec<u8>),
) {
    let count = u16::try_from(all.len()).unwrap_or(u16::MAX);
    count.put(to);
    for value in all.take(count.into()) {
        put(value, to);
    }
}

/// Reads values whose keys ascend.
fn take_ascending<T: Field, K: Ord>(
    from: &mut Reader<'_>,
    name: &'static str,
    key: impl Fn(&T) -> &K,
) -> Result<Vec<T>, DecodeError> {
    let at = from.offset();
    let all = Vec::<T>::take(from, name)?;
    match all.is_sorted_by(|a, b| key(a) < key(b)) {
        true => Ok(all),
        false => Err(DecodeError::value(name, at, 0)),
    }
}

/// At most 65 535 values; further values are left out.
impl<T: Field> Field for Vec<T> {
    fn put(&self, to: &mut Vec<u8>) {
        let count = u16::try_from(self.len()).unwrap_or(u16::MAX);
        count.put(to);
        T::put_each(&self[..count.into()], to);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        let count = from.u16(name)?;
        T::take_each(from, count.into(), name)
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
}

/// A text of at most [`TEXT_MAX`] octets.
fn put_text(text: &str, to: &mut Vec<u8>) {
    (text.len() as u16).put(to);
    to.extend_from_slice(text.as_bytes());
}

/// The front of a text that may be longer.
fn put_cut(text: &str, to: &mut Vec<u8>) {
    let mut end = text.len().min(TEXT_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    put_text(&text[..end], to);
}

/// Reads such a text.
fn take_text<'a>(from: &mut Reader<'a>, name: &'static str) -> Result<&'a str, DecodeError> {
    let at = from.offset();
    let length = from.u16(name)?;
    if usize::from(length) > TEXT_MAX {
        return Err(DecodeError::value(name, at, length.into()));
    }
    let octets = from.take(name, length.into())?;
    str::from_utf8(octets).map_err(|_| DecodeError::value(name, at, 0))
}

impl Field for String {
    fn put(&self, to: &mut Vec<u8>) {
        put_cut(self, to);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        take_text(from, name).map(str::to_owned)
    }
}

/// Its length in one octet, then the octets; at most [`UserData::MAX`].
impl Field for UserData {
    fn put(&self, to: &mut Vec<u8>) {
        (self.octets().len() as u8).put(to);
        to.extend_from_slice(self.octets());
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        let at = from.offset();
        let length = from.u8(name)?;
        let octets = from.take(name, length.into())?;
        Self::new(octets.to_vec()).ok_or_else(|| DecodeError::value(name, at, length.into()))
    }
}

/// In the order of the keys, each key once; at most 65 535.
impl<K: Field + Ord, V: Field> Field for BTreeMap<K, V> {
    fn put(&self, to: &mut Vec<u8>) {
        put_all(self.iter(), to, |(key, value), to| {
            key.put(to);
            value.put(to);
        });
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        let all = take_ascending(from, name, |(key, _): &(K, V)| key)?;
        Ok(all.into_iter().collect())
    }
}

/// In order, each value once; at most 65 535.
impl<T: Field + Ord> Field for BTreeSet<T> {
    fn put(&self, to: &mut Vec<u8>) {
        put_all(self.iter(), to, T::put);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        let all = take_ascending(from, name, |value: &T| value)?;
        Ok(all.into_iter().collect())
    }
}

/// The octets of the element, at most [`Blli::MAX`].
impl Field for Blli {
    fn put(&self, to: &mut Vec<u8>) {
        self.octets().to_vec().put(to);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        let at = from.offset();
        let octets = Vec::<u8>::take(from, name)?;
        Self::from_octets(&octets).ok_or(DecodeError::value(name, at, octets.len() as u32))
    }
}

/// Its type, then its information, at most [`Bhli::MAX`] octets.
impl Field for Bhli {
    fn put(&self, to: &mut Vec<u8>) {
        self.kind().put(to);
        self.info().to_vec().put(to);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        let at = from.offset();
        let (kind, info) = <(u8, Vec<u8>)>::take(from, name)?;
        Self::new(kind, &info).ok_or(DecodeError::value(name, at, kind.into()))
    }
}

/// A structure is encoded as its fields in order. The macro takes the declaration of a structure of this crate, or the
/// name and the fields of a structure that another crate declares:
///
/// ```
/// use aerostat_proto::split::codec::{Field, Reader};
/// aerostat_proto::split_record! {
///     /// A door.
///     #[derive(Debug, PartialEq)]
///     pub struct Door {
///         /// Its number.
///         pub number: u16,
///         /// True if it is open.
///         pub open: bool,
///     }
/// }
/// let (door, mut octets) = (Door { number: 7, open: true }, Vec::new());
/// door.put(&mut octets);
/// assert_eq!(octets, [0, 7, 1]);
/// assert_eq!(Door::take(&mut Reader::new(&octets), "door"), Ok(door));
/// ```
#[macro_export]
macro_rules! split_record {
    (
        $(#[$meta:meta])*
        $vis:vis struct $kind:ident {
            $( $(#[$about:meta])* $seen:vis $field:ident: $type:ty, )+
        }
    ) => {
        $(#[$meta])*
        $vis struct $kind {
            $( $(#[$about])* $seen $field: $type, )+
        }
        $crate::split_record!($kind { $($field),+ });
    };
    ($kind:ident $(<$part:ident>)? { $($field:ident),+ $(,)? }) => {
        impl $(<$part: $crate::split::codec::Field>)? $crate::split::codec::Field for $kind $(<$part>)? {
            fn put(&self, to: &mut Vec<u8>) {
                let Self { $($field),+ } = self;
                $($crate::split::codec::Field::put($field, to);)+
            }
            fn take(
                from: &mut $crate::split::codec::Reader<'_>,
                _: &'static str,
            ) -> Result<Self, $crate::split::codec::DecodeError> {
                Ok(Self { $($field: $crate::split::codec::Field::take(from, stringify!($field))?),+ })
            }
        }
    };
}

/// A choice is encoded as its number in two octets, then the fields of the chosen variant.
#[macro_export]
macro_rules! split_choice {
    ($kind:ident $(<$part:ident>)? {
        $($number:literal $variant:ident $({ $($field:ident),+ })? $(($inner:ident))?;)+
    }) => {
        impl $(<$part: $crate::split::codec::Field>)? $crate::split::codec::Field for $kind $(<$part>)? {
            fn put(&self, to: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $({ $($field),+ })? $(($inner))? => {
                        <u16 as $crate::split::codec::Field>::put(&$number, to);
                        $($($crate::split::codec::Field::put($field, to);)+)?
                        $($crate::split::codec::Field::put($inner, to);)?
                    })+
                }
            }
            fn take(
                from: &mut $crate::split::codec::Reader<'_>,
                name: &'static str,
            ) -> Result<Self, $crate::split::codec::DecodeError> {
                let at = from.offset();
                Ok(match from.u16(name)? {
                    $($number => Self::$variant
                        $({ $($field: $crate::split::codec::Field::take(from, stringify!($field))?),+ })?
                        $(($crate::split::codec::Field::take(from, stringify!($inner))?))?,)+
                    other => {
                        return Err($crate::split::codec::DecodeError::value(name, at, other.into()));
                    }
                })
            }
        }
    };
}

split_record!(Vc { vpi, vci });
split_record!(Qos { tx, rx });
split_record!(Sap { blli, bhli });
split_record!(TrafficParams {
    category,
    max_pcr,
    pcr0,
    min_pcr,
    scr,
    mbs,
    clp0,
    tagging,
    max_cdv,
    second_cdv,
    max_sdu,
    frame_discard
});
split_choice!(ServiceCategory { 1 Cbr; 2 RtVbr; 3 NrtVbr; 4 Abr; 5 Gfr; 6 Ubr; });
split_choice!(AtmRequest {
    1 Listen { address, sap, max_sdu };
    2 Unlisten { address, sap };
    3 Connect { conn, calling, called, sap, qos, multipoint };
    4 OpenPermanent { conn, vc, qos };
    5 AddParty { conn, party, called };
    6 DropParty { conn, party };
    7 Accept { conn, terms };
    8 Release { conn, cause };
    9 Send { conn, sdu };
});
/// An event on its way to another process.
type OwnedEvent = AtmEvent<Vec<u8>>;
split_choice!(OwnedEvent {
    1 Up;
    2 Down;
    3 Incoming { conn, calling, called, sap, qos, multipoint };
    4 Connected { conn, vc, qos };
    5 Released { conn, cause };
    6 PartyAdded { conn, party };
    7 PartyGone { conn, party, cause };
    8 Received { conn, sdu };
});
split_choice!(Role { 1 Mpcd; 2 Lecd; 4 Lecs; 5 Les; 6 Bus; 7 Sigd; 8 Ilmid; 9 Mpsd; });
split_choice!(Greeting {
    0x4101 Hello { version, role, node };
    0x4102 Welcome { version };
    0x4103 Refused(why);
    0x4104 Confined(may);
});

/// A name becomes the equal name in [`names`], so that it can be compared with the names in the program.
impl Field for Trace {
    fn put(&self, to: &mut Vec<u8>) {
        let name = names::known(self.name).unwrap_or(names::OTHER);
        let fields = self.fields.iter();
        let fields = fields.filter_map(|(key, value)| Some((names::known(key)?, value)));
        put_text(name, to);
        put_cut(&self.text.read(), to);
        (fields.clone().count() as u16).put(to);
        for (key, value) in fields {
            put_text(key, to);
            put_cut(&value.read(), to);
        }
        self.milestone.put(to);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        let at = from.offset();
        let known = |text: &str| names::known(text).ok_or(DecodeError::value(name, at, 0));
        let name = known(take_text(from, name)?)?;
        let text = String::take(from, "text")?;
        let count = from.u16("fields")?;
        let mut fields = Fields::new();
        for _ in 0..count {
            let key = known(take_text(from, "fields")?)?;
            fields.push((key, String::take(from, "fields")?.into()));
        }
        Ok(Self {
            name,
            text: text.into(),
            fields,
            milestone: bool::take(from, "milestone")?,
        })
    }
}
