//! The runs of cells that wait at a port: the lists of all its queues, in one table.
//!
//! A slot that becomes free is the next one to be used. So a port whose queues are short works in few slots, which stay
//! in the processor's cache, and an idle queue costs no memory here. The table keeps the slots that the port has needed
//! at most at a time; the limits of the port's buffers bound that.

use super::cell_trains::NO_TRAIN;
use super::pdu::CellRun;

/// The end of a list.
const NO_SLOT: u32 = u32::MAX;

/// The list of one queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunList {
    head: u32,
    tail: u32,
}

impl RunList {
    /// A list without runs.
    pub(super) const EMPTY: Self = Self {
        head: NO_SLOT,
        tail: NO_SLOT,
    };
}

#[derive(Debug)]
struct Slot {
    /// Without cells while the slot is free.
    run: CellRun,
    /// The next slot of the list, or the next free slot.
    next: u32,
    /// The trains of the run.
    trains: Joined,
}

/// The trains of a run that waits. All its cells may have left, if others may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Joined {
    /// Serial number of the train that brought the last of the cells; 0 if it was no train.
    pub(super) input: u64,
    /// The train into which the cells leave.
    pub(super) out: u32,
}

impl Joined {
    const NO: Self = Self {
        input: 0,
        out: NO_TRAIN,
    };
}

/// The table. See the documentation of this module.
#[derive(Debug)]
pub(super) struct RunStore {
    slots: Vec<Slot>,
    free: u32,
}

impl Default for RunStore {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: NO_SLOT,
        }
    }
}

impl RunStore {
    /// Appends a run to a list; the run has no cells then. Its octets are copied here, and not again before it leaves.
    #[inline(always)]
    pub(super) fn append(&mut self, list: &mut RunList, run: &mut CellRun) {
        if self.free == NO_SLOT {
            self.grow();
        }
        let index = self.free;
        if let Some(slot) = self.slots.get_mut(index as usize) {
            self.free = slot.next;
            slot.next = NO_SLOT;
            slot.trains = Joined::NO;
            slot.run.take_from(run);
        }
        match self.slots.get_mut(list.tail as usize) {
            Some(last) => last.next = index,
            None => list.head = index,
        }
        list.tail = index;
    }

    /// Appends a run to a list.
    pub(super) fn push(&mut self, list: &mut RunList, mut run: CellRun) {
        self.append(list, &mut run);
    }

    #[cold]
    fn grow(&mut self) {
        self.free = self.slots.len() as u32;
        self.slots.push(Slot {
            run: CellRun::default(),
            next: NO_SLOT,
            trains: Joined::NO,
        });
    }

    /// Moves the first run of a list to `to`, if `fits` says so of the run and its trains; false if there is no such
    /// run. The octets of the run are copied once.
    #[inline(always)]
    pub(super) fn pop_if(
        &mut self,
        list: &mut RunList,
        to: &mut CellRun,
        fits: impl FnOnce(&CellRun, &Joined) -> bool,
    ) -> bool {
        let index = list.head;
        let Some(slot) = self.slots.get_mut(index as usize) else {
            return false;
        };
        if !fits(&slot.run, &slot.trains) {
            return false;
        }
        list.head = slot.next;
        if list.head == NO_SLOT {
            list.tail = NO_SLOT;
        }
        slot.next = self.free;
        self.free = index;
        to.take_from(&mut slot.run);
        true
    }

    /// Removes the first run of a list.
    pub(super) fn pop(&mut self, list: &mut RunList) -> Option<CellRun> {
        let mut run = CellRun::default();
        self.pop_if(list, &mut run, |_, _| true).then_some(run)
    }

    /// The first run of a list.
    #[inline]
    pub(super) fn front(&self, list: &RunList) -> Option<&CellRun> {
        self.slots.get(list.head as usize).map(|slot| &slot.run)
    }

    /// The last run of a list.
    pub(super) fn back_mut(&mut self, list: &RunList) -> Option<&mut CellRun> {
        self.slots
            .get_mut(list.tail as usize)
            .map(|slot| &mut slot.run)
    }

    /// The first run of a list, with its trains.
    #[inline]
    pub(super) fn first(&mut self, list: &RunList) -> Option<(&mut CellRun, &mut Joined)> {
        let slot = self.slots.get_mut(list.head as usize)?;
        Some((&mut slot.run, &mut slot.trains))
    }

    /// The last run of a list, with its trains.
    #[inline]
    pub(super) fn last(&mut self, list: &RunList) -> Option<(&mut CellRun, &mut Joined)> {
        let slot = self.slots.get_mut(list.tail as usize)?;
        Some((&mut slot.run, &mut slot.trains))
    }

    /// The trains into which the runs of a list leave, in order.
    pub(super) fn outs(&self, list: &RunList) -> impl Iterator<Item = u32> {
        let mut next = list.head;
        core::iter::from_fn(move || {
            let slot = self.slots.get(next as usize)?;
            next = slot.next;
            Some(slot.trains.out)
        })
    }

    /// The runs of a list, in order.
    pub(super) fn iter(&self, list: &RunList) -> impl Iterator<Item = &CellRun> {
        let mut next = list.head;
        core::iter::from_fn(move || {
            let slot = self.slots.get(next as usize)?;
            next = slot.next;
            Some(&slot.run)
        })
    }

    /// Removes all runs of a list.
    pub(super) fn clear(&mut self, list: &mut RunList) {
        while self.pop(list).is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aerostat_wire::Vc;
    use aerostat_wire::cell::Pti;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Lists that share the table keep their own runs in order, and slots are used again.
        #[test]
        fn lists_are_queues(steps in proptest::collection::vec((0_usize..4, 0_u8..4), 1..400)) {
            let mut store = RunStore::default();
            let mut lists = [RunList::EMPTY; 4];
            let mut models: [VecDeque<u16>; 4] = Default::default();
            let mut most = 0;
            for (number, (at, step)) in (0..).zip(steps) {
                match step {
                    0 | 1 => {
                        let run = CellRun::raw(Vc::new(0, number), Pti::USER, [0; 48]);
                        store.push(&mut lists[at], run);
                        models[at].push_back(number);
                    }
                    2 => {
                        let got = store.pop(&mut lists[at]).map(|run| run.vc.vci);
                        prop_assert_eq!(got, models[at].pop_front());
                    }
                    _ => {
                        store.clear(&mut lists[at]);
                        models[at].clear();
                    }
                }
                let waiting: usize = models.iter().map(VecDeque::len).sum();
                most = most.max(waiting);
                for (list, model) in lists.iter().zip(&models) {
                    let all: VecDeque<_> = store.iter(list).map(|run| run.vc.vci).collect();
                    prop_assert_eq!(&all, model);
                    let back = store.back_mut(list).map(|run| run.vc.vci);
                    prop_assert_eq!(back, model.back().copied());
                    let front = store.first(list).map(|(run, _)| run.vc.vci);
                    prop_assert_eq!(front, model.front().copied());
                }
            }
            prop_assert_eq!(store.slots.len(), most);
        }
    }
}
