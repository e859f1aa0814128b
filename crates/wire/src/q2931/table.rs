//! The tables: every information element and every message of Q.2931, Q.2971 and the ATM Forum UNI.

/// Identifiers of information elements. Source: Q.2931 §4.5, Q.2971 §8.2, UNI 4.0 §2, PNNI 1.0 §6.4.
pub mod id {
    #![allow(
        missing_docs,
        reason = "the names are those of the standard; DEFINITIONS has the rest"
    )]
    pub const CAUSE: u8 = 0x08;
    pub const CALL_STATE: u8 = 0x14;
    pub const FACILITY: u8 = 0x1c;
    pub const NOTIFICATION: u8 = 0x27;
    pub const TRANSIT_DELAY: u8 = 0x42;
    pub const CONNECTED_NUMBER: u8 = 0x4c;
    pub const CONNECTED_SUBADDRESS: u8 = 0x4d;
    pub const ENDPOINT_REFERENCE: u8 = 0x54;
    pub const ENDPOINT_STATE: u8 = 0x55;
    pub const AAL_PARAMETERS: u8 = 0x58;
    pub const TRAFFIC_DESCRIPTOR: u8 = 0x59;
    pub const CONNECTION_ID: u8 = 0x5a;
    pub const OAM_TRAFFIC: u8 = 0x5b;
    pub const QOS_PARAMETER: u8 = 0x5c;
    pub const BHLI: u8 = 0x5d;
    pub const BEARER_CAPABILITY: u8 = 0x5e;
    pub const BLLI: u8 = 0x5f;
    pub const LOCKING_SHIFT: u8 = 0x60;
    pub const NON_LOCKING_SHIFT: u8 = 0x61;
    pub const SENDING_COMPLETE: u8 = 0x62;
    pub const REPEAT_INDICATOR: u8 = 0x63;
    pub const CALLING_NUMBER: u8 = 0x6c;
    pub const CALLING_SUBADDRESS: u8 = 0x6d;
    pub const CALLED_NUMBER: u8 = 0x70;
    pub const CALLED_SUBADDRESS: u8 = 0x71;
    pub const TRANSIT_NETWORK: u8 = 0x78;
    pub const RESTART_INDICATOR: u8 = 0x79;
    pub const NARROWBAND_LLC: u8 = 0x7c;
    pub const NARROWBAND_HLC: u8 = 0x7d;
    pub const USER_USER: u8 = 0x7e;
    pub const GENERIC_IDENTIFIER: u8 = 0x7f;
    pub const MINIMUM_TRAFFIC: u8 = 0x81;
    pub const ALTERNATIVE_TRAFFIC: u8 = 0x82;
    pub const ABR_SETUP: u8 = 0x84;
    pub const REPORT_TYPE: u8 = 0x89;
    pub const CALLED_SOFT_PVC: u8 = 0xe0;
    pub const CRANKBACK: u8 = 0xe1;
    pub const TRANSIT_LIST: u8 = 0xe2;
    pub const CALLING_SOFT_PVC: u8 = 0xe3;
    pub const ABR_ADDITIONAL: u8 = 0xe4;
    pub const LIJ_CALL_ID: u8 = 0xe8;
    pub const LIJ_PARAMETERS: u8 = 0xe9;
    pub const LEAF_SEQUENCE: u8 = 0xea;
    pub const CONNECTION_SCOPE: u8 = 0xeb;
    pub const EXTENDED_QOS: u8 = 0xec;
    pub const MINIMUM_CELL_RATE: u8 = 0xf0;
}

/// Coding standards that an element may announce in its second octet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// ITU (0).
    Itu,
    /// Network specific (3): the ATM Forum's own elements.
    Forum,
    /// Both codings.
    Both,
}

/// The standard's definition of one information element.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// Identifier.
    pub id: u8,
    /// Name in the words of the standard.
    pub name: &'static str,
    /// Largest length, octets, with the 4-octet header.
    pub max: usize,
    /// Coding standard.
    pub coding: Coding,
}

macro_rules! definitions {
    ($($id:ident $name:literal $max:literal $coding:ident,)*) => {
        /// All elements, by identifier.
        pub const DEFINITIONS: &[Definition] = &[$(Definition {
            id: id::$id, name: $name, max: $max, coding: Coding::$coding,
        },)*];
    };
}

definitions! {
    CAUSE "cause" 34 Both,
    CALL_STATE "call state" 5 Itu,
    FACILITY "facility" 4096 Itu,
    NOTIFICATION "notification indicator" 4096 Itu,
    TRANSIT_DELAY "end-to-end transit delay" 13 Both,
    CONNECTED_NUMBER "connected number" 26 Itu,
    CONNECTED_SUBADDRESS "connected subaddress" 25 Itu,
    ENDPOINT_REFERENCE "endpoint reference" 7 Itu,
    ENDPOINT_STATE "endpoint state" 5 Itu,
    AAL_PARAMETERS "AAL parameters" 21 Itu,
    TRAFFIC_DESCRIPTOR "ATM traffic descriptor" 30 Itu,
    CONNECTION_ID "connection identifier" 9 Itu,
    OAM_TRAFFIC "OAM traffic descriptor" 6 Itu,
    QOS_PARAMETER "quality of service parameter" 6 Both,
    BHLI "broadband high layer information" 13 Itu,
    BEARER_CAPABILITY "broadband bearer capability" 7 Itu,
    BLLI "broadband low layer information" 17 Itu,
    LOCKING_SHIFT "broadband locking shift" 5 Itu,
    NON_LOCKING_SHIFT "broadband non-locking shift" 5 Itu,
    SENDING_COMPLETE "broadband sending complete" 5 Itu,
    REPEAT_INDICATOR "broadband repeat indicator" 5 Itu,
    CALLING_NUMBER "calling party number" 26 Itu,
    CALLING_SUBADDRESS "calling party subaddress" 25 Itu,
    CALLED_NUMBER "called party number" 25 Itu,
    CALLED_SUBADDRESS "called party subaddress" 25 Itu,
    TRANSIT_NETWORK "transit network selection" 9 Itu,
    RESTART_INDICATOR "restart indicator" 5 Itu,
    NARROWBAND_LLC "narrowband low layer compatibility" 20 Itu,
    NARROWBAND_HLC "narrowband high layer compatibility" 7 Itu,
    USER_USER "user-user" 133 Itu,
    GENERIC_IDENTIFIER "generic identifier transport" 33 Itu,
    MINIMUM_TRAFFIC "minimum acceptable ATM traffic descriptor" 20 Itu,
    ALTERNATIVE_TRAFFIC "alternative ATM traffic descriptor" 30 Itu,
    ABR_SETUP "ABR setup parameters" 36 Itu,
    REPORT_TYPE "report type" 5 Itu,
    CALLED_SOFT_PVC "called party soft PVPC or PVCC" 11 Forum,
    CRANKBACK "crankback" 72 Forum,
    TRANSIT_LIST "designated transit list" 546 Forum,
    CALLING_SOFT_PVC "calling party soft PVPC or PVCC" 10 Forum,
    ABR_ADDITIONAL "ABR additional parameters" 14 Forum,
    LIJ_CALL_ID "LIJ call identifier" 9 Forum,
    LIJ_PARAMETERS "LIJ parameters" 5 Forum,
    LEAF_SEQUENCE "leaf sequence number" 8 Forum,
    CONNECTION_SCOPE "connection scope selection" 6 Forum,
    EXTENDED_QOS "extended QoS parameters" 25 Forum,
    MINIMUM_CELL_RATE "minimum desired cell rate" 13 Forum,
}

/// The definition of an element; `None` if the identifier is not defined.
#[must_use]
pub fn definition(id: u8) -> Option<&'static Definition> {
    static PLACES: [u8; 256] = {
        // One more than the place in the table; 0 is no definition. A SETUP asks for more than a hundred definitions.
        let mut places = [0; 256];
        let mut at = 0;
        while at < DEFINITIONS.len() {
            places[DEFINITIONS[at].id as usize] = at as u8 + 1;
            at += 1;
        }
        places
    };
    let place = usize::from(PLACES[usize::from(id)]);
    DEFINITIONS.get(place.checked_sub(1)?)
}

/// A message type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageType(pub u8);

/// The standard's definition of one message.
#[derive(Clone, Copy, Debug)]
pub struct MessageDefinition {
    /// Its type.
    pub kind: MessageType,
    /// Name in the words of the standard.
    pub name: &'static str,
    /// Elements that are mandatory in every case.
    pub mandatory: &'static [u8],
    /// Allowed elements: (identifier, largest number of occurrences).
    pub optional: &'static [(u8, u8)],
}

macro_rules! messages {
    ($($code:literal $konst:ident $name:literal
        [$($mand:ident)*] [$($opt:ident $most:literal)*];)*) => {
        impl MessageType {
            $(#[doc = $name] pub const $konst: Self = Self($code);)*
        }
        /// All messages.
        pub const MESSAGES: &[MessageDefinition] = &[$(MessageDefinition {
            kind: MessageType::$konst,
            name: $name,
            mandatory: &[$(id::$mand),*],
            optional: &[$((id::$opt, $most)),*],
        },)*];
    };
}

// Source: Q.2931 §3.1, Q.2971 §8.1, UNI 4.0 §2, PNNI 1.0 §6.3. Mandatory elements that depend on the state of the call
// (connection identifier, cause of RELEASE COMPLETE) are listed as optional, and so is the QoS parameter, which the
// extended QoS parameters may replace.
messages! {
    0x01 ALERTING "ALERTING" [] [CONNECTION_ID 1 ENDPOINT_REFERENCE 1 NOTIFICATION 2
        GENERIC_IDENTIFIER 3 USER_USER 1];
    0x02 CALL_PROCEEDING "CALL PROCEEDING" [] [CONNECTION_ID 1 ENDPOINT_REFERENCE 1 NOTIFICATION 2];
    0x03 PROGRESS "PROGRESS" [] [NOTIFICATION 2];
    0x05 SETUP "SETUP" [TRAFFIC_DESCRIPTOR BEARER_CAPABILITY CALLED_NUMBER]
        [QOS_PARAMETER 1 EXTENDED_QOS 1 CONNECTION_ID 1 ENDPOINT_REFERENCE 1 AAL_PARAMETERS 1 BHLI 1
         REPEAT_INDICATOR 3 BLLI 3 CALLED_SUBADDRESS 2 CALLING_NUMBER 1 CALLING_SUBADDRESS 2
         TRANSIT_NETWORK 4 TRANSIT_DELAY 1 NOTIFICATION 2 SENDING_COMPLETE 1 ALTERNATIVE_TRAFFIC 1
         MINIMUM_TRAFFIC 1 USER_USER 1 GENERIC_IDENTIFIER 3 LIJ_CALL_ID 1 LIJ_PARAMETERS 1
         LEAF_SEQUENCE 1 ABR_SETUP 1 ABR_ADDITIONAL 1 CONNECTION_SCOPE 1 REPORT_TYPE 1
         MINIMUM_CELL_RATE 1 OAM_TRAFFIC 1 NARROWBAND_LLC 3 NARROWBAND_HLC 2 TRANSIT_LIST 10
         CALLED_SOFT_PVC 1 CALLING_SOFT_PVC 1 FACILITY 1];
    0x07 CONNECT "CONNECT" [] [CONNECTION_ID 1 AAL_PARAMETERS 1 BLLI 1 ENDPOINT_REFERENCE 1
        NOTIFICATION 2 CONNECTED_NUMBER 1 CONNECTED_SUBADDRESS 1 TRANSIT_DELAY 1 GENERIC_IDENTIFIER 3
        USER_USER 1 TRAFFIC_DESCRIPTOR 1 EXTENDED_QOS 1 ABR_SETUP 1 ABR_ADDITIONAL 1 OAM_TRAFFIC 1
        NARROWBAND_LLC 1 CALLED_SOFT_PVC 1 FACILITY 1];
    0x0d SETUP_ACK "SETUP ACKNOWLEDGE" [] [CONNECTION_ID 1];
    0x0f CONNECT_ACK "CONNECT ACKNOWLEDGE" [] [NOTIFICATION 2];
    0x15 COBI_SETUP "COBI SETUP" [] [];
    0x46 RESTART "RESTART" [RESTART_INDICATOR] [CONNECTION_ID 1];
    0x4d RELEASE "RELEASE" [CAUSE] [CAUSE 2 NOTIFICATION 2 GENERIC_IDENTIFIER 3 USER_USER 1
        CRANKBACK 1 FACILITY 1];
    0x4e RESTART_ACK "RESTART ACKNOWLEDGE" [RESTART_INDICATOR] [CONNECTION_ID 1];
    0x5a RELEASE_COMPLETE "RELEASE COMPLETE" [] [CAUSE 2 GENERIC_IDENTIFIER 3 USER_USER 1
        CRANKBACK 1 FACILITY 1];
    0x62 FACILITY "FACILITY" [] [FACILITY 1];
    0x6e NOTIFY "NOTIFY" [NOTIFICATION] [NOTIFICATION 2 ENDPOINT_REFERENCE 1];
    0x75 STATUS_ENQUIRY "STATUS ENQUIRY" [] [ENDPOINT_REFERENCE 1];
    0x7b INFORMATION "INFORMATION" [] [SENDING_COMPLETE 1 CALLED_NUMBER 1];
    0x7d STATUS "STATUS" [CALL_STATE CAUSE] [ENDPOINT_REFERENCE 1 ENDPOINT_STATE 1];
    0x80 ADD_PARTY "ADD PARTY" [CALLED_NUMBER ENDPOINT_REFERENCE]
        [AAL_PARAMETERS 1 BHLI 1 BLLI 1 CALLED_SUBADDRESS 2 CALLING_NUMBER 1 CALLING_SUBADDRESS 2
         SENDING_COMPLETE 1 TRANSIT_NETWORK 4 TRANSIT_DELAY 1 NOTIFICATION 2 USER_USER 1
         GENERIC_IDENTIFIER 3 LEAF_SEQUENCE 1 REPEAT_INDICATOR 1 TRANSIT_LIST 10 CALLED_SOFT_PVC 1
         CALLING_SOFT_PVC 1];
    0x81 ADD_PARTY_ACK "ADD PARTY ACKNOWLEDGE" [ENDPOINT_REFERENCE] [AAL_PARAMETERS 1 BLLI 1
        NOTIFICATION 2 TRANSIT_DELAY 1 CONNECTED_NUMBER 1 CONNECTED_SUBADDRESS 1 USER_USER 1
        GENERIC_IDENTIFIER 3 CALLED_SOFT_PVC 1];
    0x82 ADD_PARTY_REJECT "ADD PARTY REJECT" [CAUSE ENDPOINT_REFERENCE] [USER_USER 1
        GENERIC_IDENTIFIER 3 CRANKBACK 1];
    0x83 DROP_PARTY "DROP PARTY" [CAUSE ENDPOINT_REFERENCE] [NOTIFICATION 2 USER_USER 1
        GENERIC_IDENTIFIER 3];
    0x84 DROP_PARTY_ACK "DROP PARTY ACKNOWLEDGE" [ENDPOINT_REFERENCE] [CAUSE 1 USER_USER 1
        GENERIC_IDENTIFIER 3];
    0x85 PARTY_ALERTING "PARTY ALERTING" [ENDPOINT_REFERENCE] [NOTIFICATION 2 USER_USER 1
        GENERIC_IDENTIFIER 3];
    0x88 MODIFY_REQUEST "MODIFY REQUEST" [] [TRAFFIC_DESCRIPTOR 1 NOTIFICATION 2];
    0x89 MODIFY_ACK "MODIFY ACKNOWLEDGE" [] [REPORT_TYPE 1 NOTIFICATION 2];
    0x8a MODIFY_REJECT "MODIFY REJECT" [CAUSE] [NOTIFICATION 2];
    0x8b CONNECTION_AVAILABLE "CONNECTION AVAILABLE" [] [NOTIFICATION 2 REPORT_TYPE 1];
    0x90 LEAF_SETUP_FAILURE "LEAF SETUP FAILURE" [CAUSE LEAF_SEQUENCE] [CALLED_NUMBER 1
        CALLED_SUBADDRESS 1 TRANSIT_NETWORK 1];
    0x91 LEAF_SETUP_REQUEST "LEAF SETUP REQUEST"
        [CALLING_NUMBER CALLED_NUMBER LIJ_CALL_ID LEAF_SEQUENCE]
        [CALLING_SUBADDRESS 1 CALLED_SUBADDRESS 1 TRANSIT_NETWORK 1];
}

impl MessageType {
    /// Its place in [`MESSAGES`]; `None` if the type is not defined.
    fn place(self) -> Option<usize> {
        static PLACES: [u8; 256] = {
            let mut places = [0; 256];
            let mut at = 0;
            while at < MESSAGES.len() {
                places[MESSAGES[at].kind.0 as usize] = at as u8 + 1;
                at += 1;
            }
            places
        };
        usize::from(PLACES[usize::from(self.0)]).checked_sub(1)
    }
    /// The definition of the type; `None` if the type is not defined.
    #[must_use]
    pub fn definition(self) -> Option<&'static MessageDefinition> {
        MESSAGES.get(self.place()?)
    }
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.definition().map_or("unknown message", |d| d.name)
    }
}

impl MessageDefinition {
    /// How often element `id` may occur in this message; 0 if it is not allowed.
    #[must_use]
    pub fn most(&self, id: u8) -> u8 {
        /// The numbers by message and element: each element of a message asks for one.
        static MOST: [[u8; 256]; MESSAGES.len()] = {
            let mut all = [[0; 256]; MESSAGES.len()];
            let mut at = 0;
            while at < MESSAGES.len() {
                let (mandatory, optional) = (MESSAGES[at].mandatory, MESSAGES[at].optional);
                let mut index = 0;
                while index < mandatory.len() {
                    all[at][mandatory[index] as usize] = 1;
                    index += 1;
                }
                // The second list counts for an element of both lists, and its first entry for an element.
                let mut index = optional.len();
                while index > 0 {
                    index -= 1;
                    all[at][optional[index].0 as usize] = optional[index].1;
                }
                at += 1;
            }
            all
        };
        let place = self.kind.place();
        let of_message = place.and_then(|place| MOST.get(place));
        of_message.map_or(0, |most| most[usize::from(id)])
    }
}
