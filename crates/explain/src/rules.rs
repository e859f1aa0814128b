//! The rules: each is declared once, with its identifier, protocol, clause and sentence.

use core::fmt;

macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident $id:literal $protocol:literal $clause:literal $sentence:literal,)+) => {
        /// A rule that a packet, or its absence, can break.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = $sentence] $rule,)+
        }

        impl Rule {
            /// All rules, by protocol.
            pub const ALL: [Self; [$($id),+].len()] = [$(Self::$rule),+];
            /// The identifier, which stays the same in all versions.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self {
                    $(Self::$rule => $id),+
                }
            }
            /// The protocol.
            #[must_use]
            pub const fn protocol(self) -> &'static str {
                match self {
                    $(Self::$rule => $protocol),+
                }
            }
            /// The clause of the standard.
            #[must_use]
            pub const fn clause(self) -> &'static str {
                match self {
                    $(Self::$rule => $clause),+
                }
            }
            /// The state of a capture without a fault.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self {
                    $(Self::$rule => $sentence),+
                }
            }
        }
    };
}

rules! {
    CellHec "cell-hec" "ATM" "I.432.1 §4.3.2" "The HEC of a cell fits its header.",
    OamCrc "oam-crc" "ATM" "I.610 §10.1" "The CRC-10 of an OAM cell fits its payload.",
    Aal5Crc "aal5-crc" "AAL5" "I.363.5 §9.2.1.6" "The CRC-32 of a PDU fits its octets.",
    Aal5Length "aal5-length" "AAL5" "I.363.5 §9.2.1.5" "The length of a PDU fits its cells, with 0 to 47 octets of padding.",
    Aal5Cpi "aal5-cpi" "AAL5" "I.363.5 §9.2.1.4" "The common part indicator is 0.",
    Aal5Aborted "aal5-aborted" "AAL5" "I.363.5 §9.2.1.5" "The length of a PDU is not 0: that aborts it.",
    Aal5TooLong "aal5-too-long" "AAL5" "I.363.5 §9.2.1.5" "A PDU has at most 65535 octets, and a last cell.",
    PseudowireWord "pw-control-word" "pseudowire" "RFC 4717 §5.1" "The control word fits the packet behind it.",
    PseudowireSequence "pw-sequence" "pseudowire" "RFC 4385 §4.2" "Numbered packets of a pseudowire follow each other.",
    GreHeader "gre-header" "GRE" "RFC 2784 §2" "A GRE header is whole, of version 0, and its checksum fits.",
    LlcPid "llc-pid" "RFC 2684" "RFC 2684 §5" "OUI and PID are ones that the standard defines.",
    LlcHeader "llc-header" "RFC 2684" "RFC 2684 §4.1" "A header of LLC and SNAP is whole.",
    BridgedPadding "bridged-padding" "RFC 2684" "RFC 2684 §5.2" "The padding in front of a bridged frame is 0.",
    BridgedFcs "bridged-fcs" "RFC 2684" "RFC 2684 §5.2" "A bridged frame with its FCS (PID 0001) ends with the right one.",
    RoutedLength "routed-length" "RFC 2684" "RFC 2684 §5.1" "A routed IP packet is whole, and its header is valid.",
    SscopFormat "sscop-format" "SSCOP" "Q.2110 §7.2" "A PDU has a length and a type that are valid.",
    SscopBegin "sscop-begin" "SSCOP" "Q.2110 §7.6" "BGN is answered before Timer_CC has expired MaxCC times.",
    SscopRejected "sscop-rejected" "SSCOP" "Q.2110 §7.1" "BGN is accepted, and not rejected.",
    SscopPoll "sscop-poll" "SSCOP" "Q.2110 §7.6" "STAT answers POLL before Timer_NO-RESPONSE expires.",
    SscopStat "sscop-stat" "SSCOP" "Q.2110 §7.4" "N(PS) of a STAT is that of a POLL.",
    SscopGap "sscop-gap" "SSCOP" "Q.2110 §7.4" "SDs follow each other without a gap in N(S).",
    SscopMissing "sscop-missing" "SSCOP" "Q.2110 §7.1" "The receiver misses no SD (USTAT, or the list of a STAT).",
    SscopWindow "sscop-window" "SSCOP" "Q.2110 §7.4" "N(S) of an SD is below the credit N(MR) of its receiver.",
    SscopAcknowledged "sscop-acknowledged" "SSCOP" "Q.2110 §7.4" "N(R) acknowledges no SD that has not been sent.",
    SscopClosed "sscop-closed" "SSCOP" "Q.2110 §7.3" "SDs are sent on a connection, between BGN and END.",
    SscopEnded "sscop-ended" "SSCOP" "Q.2110 §7.1" "SSCOP itself does not end the connection (END with S = 1).",
    CallFormat "call-format" "Q.2931" "Q.2931 §5.6.1" "A message has discriminator 9 and a call reference of 3 octets.",
    CallLength "call-length" "Q.2931" "Q.2931 §4.4.3" "The length of a message is that of its elements.",
    CallMessage "call-message" "Q.2931" "Q.2931 §5.6.4" "The type of a message is one that the standards define.",
    CallMandatory "call-mandatory" "Q.2931" "Q.2931 §5.6.7.1" "A message has its mandatory elements.",
    CallContent "call-content" "Q.2931" "Q.2931 §5.6.7.2" "Elements have valid contents and lengths.",
    CallUnknown "call-unknown" "Q.2931" "Q.2931 §5.6.8.1" "Identifiers of elements are ones that the standards define.",
    CallUnexpected "call-unexpected" "Q.2931" "Q.2931 §5.6.8" "Elements are allowed in the message that has them.",
    CallRepeated "call-repeated" "Q.2931" "Q.2931 §5.6.5.2" "An element occurs as often as its message allows.",
    CallSetup "call-setup" "Q.2931" "Q.2931 §5.1.1" "SETUP is answered before T303 has expired twice.",
    CallConnect "call-connect" "Q.2931" "Q.2931 §5.1.6" "CONNECT, or a refusal, follows CALL PROCEEDING before T310 expires.",
    CallAcknowledge "call-acknowledge" "Q.2931" "Q.2931 §5.2.6" "CONNECT ACKNOWLEDGE answers CONNECT before T313 expires.",
    CallOrder "call-order" "Q.2931" "Q.2931 §5.6.4" "CALL PROCEEDING and ALERTING come before CONNECT.",
    CallReference "call-reference" "Q.2931" "Q.2931 §5.6.3.2" "SETUP has a call reference that is not in use.",
    CallStray "call-stray" "Q.2931" "Q.2931 §5.6.3.2" "The call reference of a message is that of a call.",
    CallRefused "call-refused" "Q.2931" "Q.2931 §5.4.2" "A call is accepted, and not refused.",
    CallCleared "call-cleared" "Q.2931" "Q.2931 §5.4.3" "A connected call ends with cause 16 or 31.",
    CallCause "call-cause" "Q.2931" "Q.2931 §3.1.9" "The first message that clears a call has a cause.",
    CallRelease "call-release" "Q.2931" "Q.2931 §5.4.3" "RELEASE is answered before T308 has expired twice.",
    CallStatus "call-status" "Q.2931" "Q.2931 §5.6.11" "STATUS reports no error.",
    CallChannel "call-channel" "Q.2931" "Q.2931 §5.1.2" "Two calls of one interface have different VPI and VCI.",
    CallParty "call-party" "Q.2971" "Q.2971 §9.2" "A party is accepted, and not refused.",
    CallRestart "call-restart" "Q.2931" "Q.2931 §5.5" "RESTART is answered before T316 expires.",
    IlmiFormat "ilmi-format" "ILMI" "af-ilmi-0065 §6" "A message is SNMPv1 with the community ILMI, in valid BER.",
    IlmiLength "ilmi-length" "ILMI" "af-ilmi-0065 §6" "A message has at most 484 octets.",
    IlmiSilent "ilmi-silent" "ILMI" "af-ilmi-0065 §8.3.1" "The other end answers one of four requests.",
    IlmiId "ilmi-id" "ILMI" "RFC 1157 §4.1.1" "The request id of a response is that of a request.",
    IlmiRefused "ilmi-refused" "ILMI" "af-ilmi-0065 §9.6" "A SetRequest (registration of an address) is not refused.",
    LaneFormat "lane-format" "LANE" "LUNI 2.0 §3.4" "A control frame is whole, and its TLVs are valid.",
    LaneVersion "lane-version" "LANE" "LUNI 2.0 §3.4" "The version of a control frame is 1.",
    LaneOpCode "lane-op-code" "LANE" "LUNI 2.0 §3.4" "The op-code is one that the standard defines.",
    LaneStatus "lane-status" "LANE" "LUNI 2.0 §3.4" "The status of a request is 0.",
    LaneConfigure "lane-configure" "LANE" "LUNI 2.0 §5.2" "LE_CONFIGURE is answered, and not refused.",
    LaneJoin "lane-join" "LANE" "LUNI 2.0 §5.3" "LE_JOIN is answered, and not refused.",
    LaneRegister "lane-register" "LANE" "LUNI 2.0 §6.1" "LE_REGISTER is answered, and not refused.",
    LaneArp "lane-arp" "LANE" "LUNI 2.0 §7.1" "LE_ARP is answered, and not refused.",
    LaneArpAddress "lane-arp-address" "LANE" "LUNI 2.0 §7.1" "An answer to LE_ARP has an ATM address.",
    LaneFlush "lane-flush" "LANE" "LUNI 2.0 §8.1" "LE_FLUSH is answered by its target.",
    LaneTransaction "lane-transaction" "LANE" "LUNI 2.0 §3.4" "The transaction id of a response is that of a request.",
    LaneLecid "lane-lecid" "LANE" "LUNI 2.0 §3.4" "The LECID of a response is that of its request.",
    LaneLecidRange "lane-lecid-range" "LANE" "LUNI 2.0 §5.3" "A LES gives LECIDs from 1 to FEFF.",
    LaneLecidTwice "lane-lecid-twice" "LANE" "LUNI 2.0 §5.3" "Two clients of an ELAN have different LECIDs.",
    LaneShort "lane-short" "LANE" "LUNI 1.0 §4.1.1" "A data frame of Ethernet has at least 62 octets.",
    AtmArpFormat "atmarp-format" "ATMARP" "RFC 2225 §8.1" "A packet has valid types and lengths.",
    AtmArpOperation "atmarp-operation" "ATMARP" "RFC 2225 §8.1" "The operation is one that the standard defines.",
    AtmArpAnswer "atmarp-answer" "ATMARP" "RFC 2225 §8.4.1" "A request is answered by a reply or a NAK.",
    AtmArpNak "atmarp-nak" "ATMARP" "RFC 2225 §8.4.1" "The server knows the address that it is asked for.",
    AtmArpOther "atmarp-other" "ATMARP" "RFC 2225 §8.4.1" "A reply is about the address that was asked for.",
    AtmArpAddress "atmarp-address" "ATMARP" "RFC 2225 §8.1" "A reply has the ATM number of its source.",
    AtmArpTwice "atmarp-twice" "ATMARP" "RFC 2225 §8.4.2" "An IP address has one ATM address.",
    InAtmArpAnswer "inatmarp-answer" "ATMARP" "RFC 2390 §5" "An inverse request is answered.",
    NhrpLength "nhrp-length" "NHRP" "RFC 2332 §5.1" "ar$pktsz is the length of the packet.",
    NhrpChecksum "nhrp-checksum" "NHRP" "RFC 2332 §5.1" "The checksum fits the packet.",
    NhrpVersion "nhrp-version" "NHRP" "RFC 2332 §5.1" "The version of a packet is 1.",
    NhrpFormat "nhrp-format" "NHRP" "RFC 2332 §5.2" "All fields are whole, and reserved bits are 0.",
    NhrpExtensions "nhrp-extensions" "NHRP" "RFC 2332 §5.3" "Extensions are whole, and end with the end marker.",
    NhrpType "nhrp-type" "NHRP" "RFC 2332 §5.2" "The type of a packet is one that the standards define.",
    NhrpAddress "nhrp-address" "NHRP" "RFC 2332 §5.1" "Addresses have the length of their family.",
    NhrpHops "nhrp-hops" "NHRP" "RFC 2332 §5.1" "The hop count of a request or reply is not used up.",
    NhrpLoop "nhrp-loop" "NHRP" "RFC 2332 §7.2" "A request does not come again the same way with a lower hop count.",
    NhrpHolding "nhrp-holding" "NHRP" "RFC 2332 §5.2.0.1" "A registration or positive answer has a holding time above 0.",
    NhrpNakHolding "nhrp-nak-holding" "NHRP" "RFC 2332 §5.2.0.1" "The holding time of a refused resolution is 0.",
    NhrpRegistration "nhrp-registration" "NHRP" "RFC 2332 §5.2.3" "A Registration Request is answered.",
    NhrpResolution "nhrp-resolution" "NHRP" "RFC 2332 §5.2.1" "A Resolution Request is answered.",
    NhrpPurge "nhrp-purge" "NHRP" "RFC 2332 §5.2.5" "A Purge Request is answered, unless its N bit is set.",
    NhrpRefused "nhrp-refused" "NHRP" "RFC 2332 §5.2.0.1" "A request is not refused (code 0).",
    NhrpError "nhrp-error" "NHRP" "RFC 2332 §5.2.7" "No Error Indication is sent.",
    NhrpErrorAboutError "nhrp-error-about-error" "NHRP" "RFC 2332 §5.2.7" "No Error Indication is about an Error Indication.",
    NhrpId "nhrp-id" "NHRP" "RFC 2332 §5.2.0.1" "The request id of a reply is that of a request.",
    NhrpReply "nhrp-reply" "NHRP" "RFC 2332 §5.2.2" "A reply has the source and destination of its request.",
    NhrpCompulsory "nhrp-compulsory" "NHRP" "RFC 2332 §5.3" "A compulsory extension is one that receivers know.",
    NhrpTwice "nhrp-twice" "NHRP" "RFC 2332 §5.3" "An extension occurs once.",
    NhrpClear "nhrp-clear" "NHRP" "RFC 2332 §5.3.4" "Authentication is a keyed digest, and no password in clear text (as Cisco's).",
    NhrpUnsigned "nhrp-unsigned" "NHRP" "RFC 2332 §5.3.4" "A station authenticates itself to one that does.",
    NhrpPassword "nhrp-password" "NHRP" "RFC 2332 §5.3.4" "Both ends have the same password, or the same SPI.",
    MpoaAnswer "mpoa-answer" "MPOA" "MPOA 1.1 §4.4" "A request of MPOA is answered.",
    MpoaRefused "mpoa-refused" "MPOA" "MPOA 1.1 §5.3" "A request of MPOA is not refused.",
    MpoaHeader "mpoa-header" "MPOA" "MPOA 1.1 §5.3.2.1" "A Cache Imposition Request has a DLL Header extension.",
    MpoaExtension "mpoa-extension" "MPOA" "MPOA 1.1 §5.3.2" "Extensions of MPOA have valid lengths.",
    MpoaKeepAlive "mpoa-keep-alive" "MPOA" "MPOA 1.1 §4.4.7" "Sequence numbers of Keep-Alives grow.",
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_rule_has_its_own_identifier_a_clause_and_a_sentence() {
        let ids: BTreeSet<_> = Rule::ALL.iter().map(|rule| rule.id()).collect();
        assert_eq!(ids.len(), Rule::ALL.len());
        for rule in Rule::ALL {
            let id = rule.id();
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(id.chars().all(plain), "{id}");
            let clause = rule.clause();
            assert!(
                clause.contains('§') && clause.chars().any(|c| c.is_ascii_digit()),
                "{id}"
            );
            let sentence = rule.sentence();
            assert!(sentence.ends_with('.') && sentence.len() > 20, "{id}");
        }
    }
}
