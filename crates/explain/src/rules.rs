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
            /// The state of a capture without a fault, as one sentence.
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
    Aal5Length "aal5-length" "AAL5" "I.363.5 §9.2.1.5" "The length of a PDU fits the number of its cells.",
    Aal5Cpi "aal5-cpi" "AAL5" "I.363.5 §9.2.1.4" "The common part indicator of a PDU is 0.",
    Aal5Aborted "aal5-aborted" "AAL5" "I.363.5 §9.2.1.5" "The length of a PDU is above 0: 0 aborts the PDU.",
    Aal5TooLong "aal5-too-long" "AAL5" "I.363.5 §9.2.1.5" "A PDU ends before it is longer than 65535 octets.",
    PseudowireWord "pw-control-word" "pseudowire" "RFC 4717 §5.1" "The control word fits the packet behind it.",
    PseudowireSequence "pw-sequence" "pseudowire" "RFC 4385 §4.2" "The numbers of a pseudowire's packets have no gap.",
    GreHeader "gre-header" "GRE" "RFC 2784 §2" "A GRE header is whole, has version 0, and its checksum fits.",
    LlcPid "llc-pid" "RFC 2684" "RFC 2684 §5" "The OUI of a header defines its PID.",
    LlcHeader "llc-header" "RFC 2684" "RFC 2684 §5" "A header of LLC and SNAP is whole.",
    BridgedPadding "bridged-padding" "RFC 2684" "RFC 2684 §5.2" "The padding in front of a bridged frame is 0.",
    BridgedFcs "bridged-fcs" "RFC 2684" "RFC 2684 §5.2" "The FCS at the end of a bridged frame fits the frame.",
    RoutedLength "routed-length" "RFC 2684" "RFC 2684 §5.1" "A routed IPv4 packet is whole, and its header is valid.",
    SscopFormat "sscop-format" "SSCOP" "Q.2110 §7.2" "The length and the type of a PDU are valid.",
    SscopBegin "sscop-begin" "SSCOP" "Q.2110 §7.6" "The other end answers BGN before Timer_CC has expired MaxCC times.",
    SscopRejected "sscop-rejected" "SSCOP" "Q.2110 §7.1" "The other end accepts BGN.",
    SscopPoll "sscop-poll" "SSCOP" "Q.2110 §7.6"
        "The other end answers POLL with STAT before Timer_NO-RESPONSE expires.",
    SscopStat "sscop-stat" "SSCOP" "Q.2110 §7.4" "A STAT has the N(PS) of a POLL.",
    SscopGap "sscop-gap" "SSCOP" "Q.2110 §7.4" "The N(S) of the SDs have no gap.",
    SscopMissing "sscop-missing" "SSCOP" "Q.2110 §7.1"
        "The receiver gets each SD: neither USTAT nor STAT lists one as missing.",
    SscopWindow "sscop-window" "SSCOP" "Q.2110 §7.4" "The N(S) of an SD is below the credit N(MR) of its receiver.",
    SscopAcknowledged "sscop-acknowledged" "SSCOP" "Q.2110 §7.4" "N(R) acknowledges only SDs that were sent.",
    SscopClosed "sscop-closed" "SSCOP" "Q.2110 §7.3" "An end sends no SD after its END, ENDAK or BGREJ.",
    SscopEnded "sscop-ended" "SSCOP" "Q.2110 §7.1"
        "The user ends the connection, and not SSCOP itself (END with S = 1).",
    CallFormat "call-format" "Q.2931" "Q.2931 §5.6.1" "A message has discriminator 9 and a call reference of 3 octets.",
    CallLength "call-length" "Q.2931" "Q.2931 §4.4.3" "The length of a message fits its elements.",
    CallMessage "call-message" "Q.2931" "Q.2931 §5.6.4" "The standards define the type of each message.",
    CallMandatory "call-mandatory" "Q.2931" "Q.2931 §5.6.7.1" "A message has its mandatory elements.",
    CallContent "call-content" "Q.2931" "Q.2931 §5.6.7.2" "The contents and lengths of elements are valid.",
    CallUnknown "call-unknown" "Q.2931" "Q.2931 §5.6.8.1" "The standards define the identifier of each element.",
    CallUnexpected "call-unexpected" "Q.2931" "Q.2931 §5.6.8" "A message has only elements that its type allows.",
    CallRepeated "call-repeated" "Q.2931" "Q.2931 §5.6.5.2" "An element occurs only as often as its message allows.",
    CallSetup "call-setup" "Q.2931" "Q.2931 §5.1.1" "The other end answers SETUP before T303 has expired twice.",
    CallConnect "call-connect" "Q.2931" "Q.2931 §5.1.6"
        "CONNECT or a refusal follows CALL PROCEEDING before T310 expires, and ALERTING before T301 expires.",
    CallAcknowledge "call-acknowledge" "Q.2931" "Q.2931 §5.2.6"
        "The other end answers CONNECT with CONNECT ACKNOWLEDGE before T313 expires.",
    CallOrder "call-order" "Q.2931" "Q.2931 §5.6.4" "CALL PROCEEDING and ALERTING come before CONNECT.",
    CallReference "call-reference" "Q.2931" "Q.2931 §5.6.3.2" "The call reference of a SETUP is not in use.",
    CallStray "call-stray" "Q.2931" "Q.2931 §5.6.3.2" "A message has the call reference of a call.",
    CallRefused "call-refused" "Q.2931" "Q.2931 §5.4.2" "The called side accepts a call.",
    CallCleared "call-cleared" "Q.2931" "Q.2931 §5.4.3" "A call ends with cause 16 or 31.",
    CallCause "call-cause" "Q.2931" "Q.2931 §3.1.9" "The first message that clears a call has a cause.",
    CallRelease "call-release" "Q.2931" "Q.2931 §5.4.3" "The other end answers RELEASE before T308 has expired twice.",
    CallStatus "call-status" "Q.2931" "Q.2931 §5.6.11" "A STATUS reports no error.",
    CallChannel "call-channel" "Q.2931" "Q.2931 §5.1.2" "Two calls of one interface have different VPI and VCI.",
    CallParty "call-party" "Q.2971" "Q.2971 §9.2" "The other end accepts a new party before T399 expires.",
    CallRestart "call-restart" "Q.2931" "Q.2931 §5.5" "The other end answers RESTART before T316 expires.",
    IlmiFormat "ilmi-format" "ILMI" "af-ilmi-0065 §6" "A message is SNMPv1 with the community ILMI, in valid BER.",
    IlmiLength "ilmi-length" "ILMI" "af-ilmi-0065 §6" "A message has at most 484 octets.",
    IlmiSilent "ilmi-silent" "ILMI" "af-ilmi-0065 §8.3.1" "The other end answers one of four requests in a row.",
    IlmiId "ilmi-id" "ILMI" "RFC 1157 §4.1.1" "A response has the request id of its request.",
    IlmiRefused "ilmi-refused" "ILMI" "af-ilmi-0065 §9.6"
        "The other end accepts a SetRequest, which registers an address or a prefix.",
    LaneFormat "lane-format" "LANE" "LUNI 2.0 §3.4" "A control frame is whole, and its TLVs are valid.",
    LaneVersion "lane-version" "LANE" "LUNI 2.0 §3.4" "The version of a control frame is 1.",
    LaneOpCode "lane-op-code" "LANE" "LUNI 2.0 §3.4" "The standard defines the op-code of each control frame.",
    LaneStatus "lane-status" "LANE" "LUNI 2.0 §3.4" "The status of a request is 0.",
    LaneConfigure "lane-configure" "LANE" "LUNI 2.0 §5.2" "The LECS answers LE_CONFIGURE with success.",
    LaneJoin "lane-join" "LANE" "LUNI 2.0 §5.3" "The LES answers LE_JOIN with success.",
    LaneRegister "lane-register" "LANE" "LUNI 2.0 §6.1" "The LES answers LE_REGISTER with success.",
    LaneArp "lane-arp" "LANE" "LUNI 2.0 §7.1" "The LES or a client answers LE_ARP with success.",
    LaneArpAddress "lane-arp-address" "LANE" "LUNI 2.0 §7.1" "The answer to LE_ARP has an ATM address.",
    LaneFlush "lane-flush" "LANE" "LUNI 2.0 §8.1" "The target of LE_FLUSH answers it.",
    LaneTransaction "lane-transaction" "LANE" "LUNI 2.0 §3.4"
        "A response has the transaction id of its request.",
    LaneLecid "lane-lecid" "LANE" "LUNI 2.0 §3.4" "A response has the LECID of its request.",
    LaneLecidRange "lane-lecid-range" "LANE" "LUNI 2.0 §5.3" "The LES gives LECIDs from 1 to FEFF.",
    LaneLecidTwice "lane-lecid-twice" "LANE" "LUNI 2.0 §5.3" "Two clients of an ELAN have different LECIDs.",
    LaneShort "lane-short" "LANE" "LUNI 1.0 §4.1.1" "A data frame of Ethernet has at least 62 octets.",
    AtmArpFormat "atmarp-format" "ATMARP" "RFC 2225 §8.7" "The types and lengths of a packet are valid.",
    AtmArpOperation "atmarp-operation" "ATMARP" "RFC 2225 §8.7" "The standard defines the operation of each packet.",
    AtmArpAnswer "atmarp-answer" "ATMARP" "RFC 2225 §8.4" "The other end answers a request with a reply or a NAK.",
    AtmArpNak "atmarp-nak" "ATMARP" "RFC 2225 §8.4" "The server knows the address that a client asks for.",
    AtmArpOther "atmarp-other" "ATMARP" "RFC 2225 §8.4" "A reply is about the address of its request.",
    AtmArpAddress "atmarp-address" "ATMARP" "RFC 2225 §8.4" "A reply has the ATM number of its source.",
    AtmArpTwice "atmarp-twice" "ATMARP" "RFC 2225 §8.4" "Two stations have different IP addresses.",
    InAtmArpAnswer "inatmarp-answer" "ATMARP" "RFC 2390 §7" "The other end answers an inverse request.",
    NhrpLength "nhrp-length" "NHRP" "RFC 2332 §5.1" "ar$pktsz is the length of the packet.",
    NhrpChecksum "nhrp-checksum" "NHRP" "RFC 2332 §5.1" "The checksum fits the packet.",
    NhrpVersion "nhrp-version" "NHRP" "RFC 2332 §5.1" "The version of a packet is 1.",
    NhrpFormat "nhrp-format" "NHRP" "RFC 2332 §5.2" "All fields are whole, and reserved bits are 0.",
    NhrpExtensions "nhrp-extensions" "NHRP" "RFC 2332 §5.3" "Extensions are whole, and end with the end marker.",
    NhrpType "nhrp-type" "NHRP" "RFC 2332 §5.2" "The standards define the type of each packet.",
    NhrpAddress "nhrp-address" "NHRP" "RFC 2332 §5.1" "An NBMA address has the length of its family.",
    NhrpHops "nhrp-hops" "NHRP" "RFC 2332 §5.1" "The source of a request gives it a hop count above 0.",
    NhrpLoop "nhrp-loop" "NHRP" "RFC 2332 §5.2.7" "A request does not come the same way again with a lower hop count.",
    NhrpHolding "nhrp-holding" "NHRP" "RFC 2332 §5.2.0.1"
        "The holding time of a registration or positive answer is above 0.",
    NhrpNakHolding "nhrp-nak-holding" "NHRP" "RFC 2332 §5.2.0.1" "The holding time of a refused resolution is 0.",
    NhrpRegistration "nhrp-registration" "NHRP" "RFC 2332 §5.2.3" "The server answers a Registration Request.",
    NhrpResolution "nhrp-resolution" "NHRP" "RFC 2332 §5.2.1" "A station or server answers a Resolution Request.",
    NhrpPurge "nhrp-purge" "NHRP" "RFC 2332 §5.2.5" "The receiver answers a Purge Request without the N bit.",
    NhrpRefused "nhrp-refused" "NHRP" "RFC 2332 §5.2.0.1" "The answer to a request has code 0.",
    NhrpError "nhrp-error" "NHRP" "RFC 2332 §5.2.7" "No station sends an Error Indication.",
    NhrpErrorAboutError "nhrp-error-about-error" "NHRP" "RFC 2332 §5.2.7"
        "No station sends an Error Indication about an Error Indication.",
    NhrpId "nhrp-id" "NHRP" "RFC 2332 §5.2.0.1" "A reply has the request id of its request.",
    NhrpReply "nhrp-reply" "NHRP" "RFC 2332 §5.2.2" "A reply has the source and destination of its request.",
    NhrpCompulsory "nhrp-compulsory" "NHRP" "RFC 2332 §5.3" "NHRP or MPOA defines each compulsory extension.",
    NhrpTwice "nhrp-twice" "NHRP" "RFC 2332 §5.3" "An extension that is not a vendor's own occurs once.",
    NhrpClear "nhrp-clear" "NHRP" "RFC 2332 §5.3.4"
        "Stations authenticate themselves with a digest, and not with a password in clear text as Cisco's.",
    NhrpUnsigned "nhrp-unsigned" "NHRP" "RFC 2332 §5.3.4" "A station authenticates itself to a station that does so.",
    NhrpPassword "nhrp-password" "NHRP" "RFC 2332 §5.3.4" "Both ends have the same password, or the same SPI.",
    MpoaAnswer "mpoa-answer" "MPOA" "MPOA 1.1 §4.4" "The other end answers a request of MPOA.",
    MpoaRefused "mpoa-refused" "MPOA" "MPOA 1.1 §5.3" "The answer to a request of MPOA has code 0.",
    MpoaHeader "mpoa-header" "MPOA" "MPOA 1.1 §5.3.2.1" "A Cache Imposition Request has a DLL Header extension.",
    MpoaExtension "mpoa-extension" "MPOA" "MPOA 1.1 §5.3.2"
        "The extensions DLL Header and Egress Cache Tag have valid lengths.",
    MpoaKeepAlive "mpoa-keep-alive" "MPOA" "MPOA 1.1 §4.4.7" "The sequence numbers of Keep-Alives do not go back.",
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
