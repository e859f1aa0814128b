//! The input as a source of choices.

/// Reads choices off an input; gives zeros once it is used up.
#[derive(Clone, Debug)]
pub struct Feed<'a> {
    octets: &'a [u8],
}

impl<'a> Feed<'a> {
    /// A source that begins at the first octet.
    #[must_use]
    pub const fn new(octets: &'a [u8]) -> Self {
        Self { octets }
    }
    /// True once everything is used.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }
    /// One octet.
    pub fn u8(&mut self) -> u8 {
        let Some((first, rest)) = self.octets.split_first() else {
            return 0;
        };
        self.octets = rest;
        *first
    }
    /// Two octets.
    pub fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.u8(), self.u8()])
    }
    /// Four octets.
    pub fn u32(&mut self) -> u32 {
        u32::from(self.u16()) << 16 | u32::from(self.u16())
    }
    /// A number below `n`, from one octet; `n` is 1..=256.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.u8()) % n
    }
    /// True in half of all cases.
    pub fn coin(&mut self) -> bool {
        self.u8() & 1 == 1
    }
    /// One of the choices.
    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }
    /// Up to `most` octets; their number is the next octet.
    pub fn octets(&mut self, most: usize) -> &'a [u8] {
        let n = usize::from(self.u8()).min(most).min(self.octets.len());
        let (head, rest) = self.octets.split_at(n);
        self.octets = rest;
        head
    }
    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.octets)
    }
    /// Changes some octets of `message`: a count, then positions and values.
    pub fn damage(&mut self, message: &mut Vec<u8>) {
        let count = self.below(8);
        for _ in 0..count.saturating_sub(3) {
            let at = usize::from(self.u16());
            let value = self.u8();
            match self.below(4) {
                0 => message.truncate(at % (message.len() + 1)),
                1 => message.insert(at % (message.len() + 1), value),
                _ => {
                    let len = message.len().max(1);
                    if let Some(octet) = message.get_mut(at % len) {
                        *octet = value;
                    }
                }
            }
        }
    }
}
