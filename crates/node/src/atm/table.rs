//! A dense table from VPI and VCI to a small number: two array look-ups, no hashing.

use aerostat_wire::Vc;

/// Maps labels to indices. Memory grows with the highest VCI used per VPI, at most 256 KiB per VPI.
#[derive(Clone, Debug, Default)]
pub struct VcTable {
    /// By VPI.
    rows: Vec<Row>,
}

/// The entries of one VPI.
#[derive(Clone, Debug, Default)]
struct Row {
    /// Index + 1 of the whole path, or 0.
    path: u32,
    /// By VCI: index + 1, or 0.
    channels: Vec<u32>,
}

/// The index of an entry: index + 1, or 0.
#[inline]
fn index_of(entry: u32) -> Option<usize> {
    (entry as usize).checked_sub(1)
}

fn entry_of(index: Option<usize>) -> u32 {
    index.map_or(0, |index| index as u32 + 1)
}

impl VcTable {
    /// The entry of a VC: that of its whole path, or else its own.
    #[inline]
    #[must_use]
    pub fn get(&self, vc: Vc) -> Option<usize> {
        let row = self.rows.get(usize::from(vc.vpi))?;
        match row.path {
            0 => index_of(*row.channels.get(usize::from(vc.vci))?),
            path => index_of(path),
        }
    }
    /// The entry of a single channel.
    #[inline]
    #[must_use]
    pub fn channel(&self, vc: Vc) -> Option<usize> {
        let row = self.rows.get(usize::from(vc.vpi))?;
        index_of(*row.channels.get(usize::from(vc.vci))?)
    }
    /// The entry of a whole path.
    #[must_use]
    pub fn path(&self, vpi: u16) -> Option<usize> {
        index_of(self.rows.get(usize::from(vpi))?.path)
    }
    /// The row of a VPI.
    fn row(&mut self, vpi: u16) -> Option<&mut Row> {
        let vpi = usize::from(vpi);
        if self.rows.len() <= vpi {
            self.rows.resize_with(vpi + 1, Row::default);
        }
        self.rows.get_mut(vpi)
    }
    /// Sets or clears the entry of a channel.
    pub fn set_channel(&mut self, vc: Vc, index: Option<usize>) {
        let vci = usize::from(vc.vci);
        if let Some(Row { channels, .. }) = self.row(vc.vpi) {
            if channels.len() <= vci {
                channels.resize(vci + 1, 0);
            }
            if let Some(entry) = channels.get_mut(vci) {
                *entry = entry_of(index);
            }
        }
    }
    /// Sets or clears the entry of a path.
    pub fn set_path(&mut self, vpi: u16, index: Option<usize>) {
        if let Some(row) = self.row(vpi) {
            row.path = entry_of(index);
        }
    }
    /// True if any channel of this path has an entry.
    #[must_use]
    pub fn path_has_channels(&self, vpi: u16) -> bool {
        let row = self.rows.get(usize::from(vpi));
        row.is_some_and(|row| row.channels.iter().any(|entry| *entry != 0))
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
