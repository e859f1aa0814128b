//! Whole labs in virtual time: a test bench, checks of what must hold in every network, random schedules of faults, and
//! mutants of lab files.

pub mod bench;
pub mod check;
pub mod mutants;
pub mod schedules;
