//! Options of connections, and what a contract makes of them.

use super::{Params, Profile};
use crate::Error;
use aerostat_proto::parameters::{Octets, Parameters as _, Value};
use aerostat_wire::ConnectionQos;
use aerostat_wire::atp::MIN_MTU;
use rustix::io::Errno;
use std::time::Duration;

/// Options of a connection, or of all connections of a listener.
#[derive(Clone, Debug)]
pub struct Options {
    /// Purpose of the call, as in `sap(7)`; empty: nothing is said. Both ends have the same.
    pub sap: String,
    /// The contract of a caller, as in `qos(7)`. SDUs that it does not limit are as long as the MTU.
    pub qos: String,
    /// Parameters of the protocol. Their profile is that of both ends; their MTU is an upper bound.
    pub params: Params,
    /// A call is given up after this time; `None`: when the timers of signalling end it.
    pub timeout: Option<Duration>,
    /// How long an end that has closed keeps the call for what the other end repeats; `None`: a retransmission timer
    /// and two round trips.
    pub linger: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sap: String::new(),
            qos: "ubr".to_owned(),
            params: Params::DEFAULT,
            timeout: None,
            linger: None,
        }
    }
}

impl Options {
    /// The defaults with the adaptive profile: cumulative acknowledgements, a timer from measured round trips.
    #[must_use]
    pub fn adaptive() -> Self {
        let mut options = Self::default();
        options.params.profile = Profile::Adaptive;
        options
    }

    /// Sets an option by name: `profile` (`report` or `adaptive`), `sap`, `qos`, `timeout` and `linger`, or a parameter
    /// of [`Params`] (`mtu`, `send_limit`, ...). Times are in milliseconds, with a fraction if needed.
    ///
    /// # Errors
    /// EINVAL with the name in [`Error::field`], if there is no such option, or the value is wrong or out of range.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        match name {
            "profile" => {
                self.params.profile = match value {
                    "report" => Profile::Report,
                    "adaptive" => Profile::Adaptive,
                    _ => {
                        let text = format!("a profile is report or adaptive, not '{value}'");
                        return Err(Error::of_field(name, text));
                    }
                }
            }
            "sap" => value.clone_into(&mut self.sap),
            "qos" => value.clone_into(&mut self.qos),
            "timeout" => self.timeout = Some(millis(name, value)?),
            "linger" => self.linger = Some(millis(name, value)?),
            _ => return self.set_parameter(name, value),
        }
        Ok(())
    }

    fn set_parameter(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let known = self.params.with_ranges();
        let Some(of) = known.iter().find(|of| of.name == name) else {
            let names: Vec<_> = known.iter().map(|of| of.name).collect();
            let text = format!(
                "there is no such option; there are profile, sap, qos, timeout, linger, {}",
                names.join(", ")
            );
            return Err(Error::of_field(name, text));
        };
        let number = || {
            let wrong = |_| Error::of_field(name, format!("'{value}' is no number"));
            value.parse::<u64>().map_err(wrong)
        };
        let given = match of.value {
            Value::Time(_) => Value::Time(millis(name, value)?),
            Value::Octets(_) => {
                Value::Octets(Octets(usize::try_from(number()?).unwrap_or(usize::MAX)))
            }
            Value::Count(_) | Value::Rate(_) | Value::Flag(_) => Value::Count(number()?),
        };
        match self.params.set(name, given) {
            true => Ok(()),
            false => {
                let text = format!("{given} is not in its range, {}", of.range);
                Err(Error::of_field(name, text))
            }
        }
    }

    /// The contract of a call, with SDUs of at most the MTU. A text that cannot be read stays: the service says why.
    pub(super) fn contract(&self) -> String {
        match self.qos.parse::<ConnectionQos>() {
            Ok(mut asked) => {
                limit(&mut asked, self.params.mtu);
                asked.to_string()
            }
            Err(_) => self.qos.clone(),
        }
    }

    /// The answer to an offer with this contract: empty if it is taken as it is.
    pub(super) fn answer(&self, offered: &str) -> String {
        match offered.parse::<ConnectionQos>() {
            Ok(offer) => {
                let mut answer = offer;
                limit(&mut answer, self.params.mtu);
                match answer == offer {
                    true => String::new(),
                    false => answer.to_string(),
                }
            }
            Err(_) => String::new(),
        }
    }

    /// The parameters of a connection with this contract.
    pub(super) fn params(&self, agreed: &str) -> Result<Params, Error> {
        let agreed = agreed.parse::<ConnectionQos>().map_err(|error| {
            Error::new(Errno::PROTO, format!("the contract '{agreed}': {error}"))
        })?;
        let mut params = self.params;
        for side in [agreed.qos.tx, agreed.qos.rx] {
            if side.category.is_none() {
                let text = "ATP needs traffic in both directions, and the contract has it in one";
                return Err(Error::new(Errno::OPNOTSUPP, text));
            }
            if side.max_sdu > 0 {
                params.mtu = params.mtu.min(side.max_sdu.into());
            }
        }
        if params.mtu < MIN_MTU {
            let text = format!("SDUs of {} octets: ATP needs {MIN_MTU}", params.mtu);
            return Err(Error::new(Errno::MSGSIZE, text));
        }
        let tx = agreed.qos.tx;
        params.cell_rate = match tx.scr {
            0 => tx.max_pcr.unwrap_or(0),
            sustained => sustained,
        };
        Ok(params)
    }
}

/// Limits the SDUs of a contract.
fn limit(contract: &mut ConnectionQos, mtu: usize) {
    let mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
    for side in [&mut contract.qos.tx, &mut contract.qos.rx] {
        if side.category.is_some() && (side.max_sdu == 0 || side.max_sdu > mtu) {
            side.max_sdu = mtu;
        }
    }
}

fn millis(name: &str, value: &str) -> Result<Duration, Error> {
    let wrong = || Error::of_field(name, format!("'{value}' is no time in milliseconds"));
    let millis: f64 = value.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(millis / 1e3).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_names_and_ranges() {
        let mut options = Options::default();
        options.set("profile", "adaptive").unwrap();
        options.set("mtu", "10").unwrap();
        options.set("timer", "0.5").unwrap_err();
        options.set("timer", "250").unwrap();
        options.set("send_limit", "65536").unwrap();
        options.set("linger", "1.5").unwrap();
        assert_eq!(options.params.profile, Profile::Adaptive);
        assert_eq!(options.params.mtu, 10);
        assert_eq!(options.params.timer, Duration::from_millis(250));
        assert_eq!(options.params.send_limit, Octets(65_536));
        assert_eq!(options.linger, Some(Duration::from_micros(1500)));
        let wrong = options.set("mtu", "4").unwrap_err();
        assert_eq!(wrong.to_string(), "mtu: 4 is not in its range, 5 to 65535");
        assert_eq!(wrong.field(), Some(("mtu", 0)));
        let unknown = options.set("window", "4").unwrap_err();
        assert!(unknown.to_string().contains("initial_window"), "{unknown}");
        options.set("profile", "tcp").unwrap_err();
        options.set("timeout", "-1").unwrap_err();
    }

    /// The contract limits the MTU, and its rate tells the window where to begin.
    #[test]
    fn a_contract_makes_the_mtu_and_the_rate() {
        let options = Options::default();
        assert_eq!(options.contract(), "ubr,aal5:sdu=9180");
        let params = |agreed: &str| options.params(agreed);
        assert_eq!(params("ubr:sdu=1500").unwrap().mtu, 1500);
        assert_eq!(params("ubr:sdu=20000").unwrap().mtu, 9180);
        let rates = params("cbr:sdu=9180,tx:max_pcr=1000,rx:max_pcr=2000").unwrap();
        assert_eq!(rates.cell_rate, 1000);
        assert_eq!(params("ubr:sdu=4").unwrap_err().errno(), 90);
        let one = params("tx:ubr:sdu=9180").or_else(|_| params("cbr:max_pcr=9,rx:none"));
        assert_eq!(one.unwrap_err().errno(), 95);
        // What is offered is taken, or with smaller SDUs.
        assert_eq!(options.answer("ubr,aal5:sdu=9180"), "");
        assert_eq!(options.answer("ubr,aal5:sdu=20000"), "ubr,aal5:sdu=9180");
    }
}
