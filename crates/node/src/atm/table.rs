//! A dense table from VPI and VCI to a small number: two array look-ups, no hashing.

use aerostat_wire::Vc;

/// Maps labels to indices. Memory grows with the highest VCI used per VPI, at most 256 KiB per VPI.
#[derive(Clone, Debug, Default)]
pub struct VcTable {
    /// By VPI, then by VCI: index + 1, or 0.
    channels: Vec<Vec<u32>>,
    /// By VPI: index + 1 of a whole path, or 0.
    paths: Vec<u32>,
}

impl VcTable {
    /// The entry of a VC: that of its whole path, or else its own.
    #[inline]
    #[must_use]
    pub fn get(&self, vc: Vc) -> Option<usize> {
        let vpi = usize::from(vc.vpi);
        match self.paths.get(vpi) {
            Some(0) | None => self.channel(vc),
            Some(path) => Some(*path as usize - 1),
        }
    }
    /// The entry of a single channel.
    #[inline]
    #[must_use]
    pub fn channel(&self, vc: Vc) -> Option<usize> {
        let channels = self.channels.get(usize::from(vc.vpi))?;
        match channels.get(usize::from(vc.vci)) {
            Some(0) | None => None,
            Some(index) => Some(*index as usize - 1),
        }
    }
    /// The entry of a whole path.
    #[must_use]
    pub fn path(&self, vpi: u16) -> Option<usize> {
        match self.paths.get(usize::from(vpi)) {
            Some(0) | None => None,
            Some(index) => Some(*index as usize - 1),
        }
    }
    /// Sets or clears the entry of a channel.
    pub fn set_channel(&mut self, vc: Vc, index: Option<usize>) {
        let (vpi, vci) = (usize::from(vc.vpi), usize::from(vc.vci));
        if self.channels.len() <= vpi {
            self.channels.resize(vpi + 1, Vec::new());
        }
        if let Some(channels) = self.channels.get_mut(vpi) {
            if channels.len() <= vci {
                channels.resize(vci + 1, 0);
            }
            if let Some(entry) = channels.get_mut(vci) {
                *entry = index.map_or(0, |index| index as u32 + 1);
            }
        }
    }
    /// Sets or clears the entry of a path.
    pub fn set_path(&mut self, vpi: u16, index: Option<usize>) {
        let vpi = usize::from(vpi);
        if self.paths.len() <= vpi {
            self.paths.resize(vpi + 1, 0);
        }
        if let Some(entry) = self.paths.get_mut(vpi) {
            *entry = index.map_or(0, |index| index as u32 + 1);
        }
    }
    /// True if any channel of this path has an entry.
    #[must_use]
    pub fn path_has_channels(&self, vpi: u16) -> bool {
        self.channels
            .get(usize::from(vpi))
            .is_some_and(|channels| channels.iter().any(|entry| *entry != 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries() {
        let mut table = VcTable::default();
        assert_eq!(table.get(Vc::new(4095, 65535)), None);
        table.set_channel(Vc::new(3, 100), Some(7));
        assert_eq!(table.get(Vc::new(3, 100)), Some(7));
        assert!(table.path_has_channels(3) && !table.path_has_channels(2));
        table.set_path(3, Some(0));
        assert_eq!(table.get(Vc::new(3, 100)), Some(0));
        assert_eq!(table.channel(Vc::new(3, 100)), Some(7));
        table.set_path(3, None);
        table.set_channel(Vc::new(3, 100), None);
        assert_eq!(table.get(Vc::new(3, 100)), None);
        assert!(!table.path_has_channels(3));
    }
}
