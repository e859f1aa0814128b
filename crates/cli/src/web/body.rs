//! Bodies of answers: a text, or pieces that come while they are read.

use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// Limit of pieces that wait for a reader.
pub(crate) const PIECES: usize = 64;

/// A body.
#[derive(Debug)]
pub(crate) enum Body {
    /// A text, once.
    Whole(Option<Bytes>),
    /// Pieces until their sender ends.
    Pieces {
        pieces: mpsc::Receiver<Bytes>,
        /// The place of the stream, which is free again when the body is gone.
        _place: OwnedSemaphorePermit,
    },
}

impl Body {
    /// A body of a text.
    pub(crate) fn whole(text: impl Into<Bytes>) -> Self {
        Self::Whole(Some(text.into()))
    }

    /// A body of pieces, which holds the place of a stream.
    pub(crate) const fn pieces(pieces: mpsc::Receiver<Bytes>, place: OwnedSemaphorePermit) -> Self {
        Self::Pieces {
            pieces,
            _place: place,
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Pieces { pieces, .. } => {
                let piece = pieces.poll_recv(context);
                piece.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(text) => {
                SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64))
            }
            Self::Pieces { .. } => SizeHint::default(),
        }
    }
}
