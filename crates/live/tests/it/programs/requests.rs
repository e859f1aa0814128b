//! Requests as programs send them.

use aerostat_proto::socket::{Request, SocketRef, UserData};

/// User data of a program that says nothing.
pub(super) fn silent() -> UserData {
    UserData::default()
}

pub(super) fn bind(socket: SocketRef, address: &str, sap: &str) -> Request {
    Request::Bind {
        socket,
        address: address.into(),
        sap: sap.into(),
    }
}

pub(super) fn listen(socket: SocketRef, backlog: u16) -> Request {
    Request::Listen {
        socket,
        backlog,
        max_sdu: 0,
    }
}

/// A point-to-point call that waits for its answer without a limit.
pub(super) fn connect(socket: SocketRef, called: &str, qos: &str, user_data: UserData) -> Request {
    call(socket, (called, qos), user_data, (false, false))
}

/// The same call, which waits for its answer so many milliseconds.
pub(super) fn within(milliseconds: u32, mut call: Request) -> Request {
    if let Request::Connect { timeout, .. } = &mut call {
        *timeout = milliseconds;
    }
    call
}

/// A call with which a tree begins.
pub(super) fn first_leaf(
    socket: SocketRef,
    called: &str,
    qos: &str,
    reports: bool,
    user_data: UserData,
) -> Request {
    call(socket, (called, qos), user_data, (true, reports))
}

fn call(
    socket: SocketRef,
    (called, qos): (&str, &str),
    user_data: UserData,
    (multipoint, reports): (bool, bool),
) -> Request {
    Request::Connect {
        socket,
        called: called.into(),
        sap: String::new(),
        qos: qos.into(),
        timeout: 0,
        multipoint,
        reports,
        user_data,
    }
}

pub(super) fn add_party(socket: SocketRef, called: &str, user_data: UserData) -> Request {
    Request::AddParty {
        socket,
        called: called.into(),
        user_data,
    }
}

pub(super) fn accept(socket: SocketRef, offer: u32, qos: &str, user_data: UserData) -> Request {
    Request::Accept {
        socket,
        offer,
        qos: qos.into(),
        user_data,
    }
}

pub(super) fn refuse(socket: SocketRef, offer: u32, cause: u8, user_data: UserData) -> Request {
    Request::Refuse {
        socket,
        offer,
        cause,
        user_data,
    }
}

pub(super) fn release(socket: SocketRef, cause: u8, user_data: UserData) -> Request {
    Request::Release {
        socket,
        cause,
        user_data,
    }
}
