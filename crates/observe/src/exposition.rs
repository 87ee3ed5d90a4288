//! Writes metrics in the text format of OpenMetrics 1.0.

use std::fmt::Error;

use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::encoding::{EncodeCounterValue, EncodeGaugeValue};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// Writes metrics, each with its samples right behind its description.
pub struct Out<'a>(DescriptorEncoder<'a>);

impl<'a> Out<'a> {
    /// To this encoder.
    pub fn new(encoder: DescriptorEncoder<'a>) -> Self {
        Self(encoder)
    }

    /// One counter.
    pub fn counter(
        &mut self,
        name: &str,
        help: &str,
        value: impl EncodeCounterValue + Copy,
    ) -> Result<(), Error> {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, f64>(&value, None)
    }

    /// One gauge.
    pub fn gauge(
        &mut self,
        name: &str,
        help: &str,
        value: impl EncodeGaugeValue + Copy,
    ) -> Result<(), Error> {
        self.0.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    }

    /// A counter, and beside it those with labels.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn counter_and<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        value: u64,
        others: impl IntoIterator<Item = (L, u64)>,
    ) -> Result<(), Error> {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, f64>(&value, None)?;
        for (labels, value) in others {
            metric.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(&value, None)?;
        }
        Ok(())
    }

    /// A gauge, if there is one, and beside it those with labels.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn gauge_and<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        value: Option<u64>,
        others: impl IntoIterator<Item = (L, u64)>,
    ) -> Result<(), Error> {
        let mut others = others.into_iter().peekable();
        if value.is_none() && others.peek().is_none() {
            return Ok(());
        }
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        if let Some(value) = value {
            metric.encode_gauge(&value)?;
        }
        for (labels, value) in others {
            metric.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    /// A counter for each set of labels.
    pub fn counters<L: EncodeLabelSet, I: IntoIterator<Item = (L, u64)>>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl FnOnce() -> I,
    ) -> Result<(), Error> {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in samples() {
            metric.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(&value, None)?;
        }
        Ok(())
    }

    /// A gauge for each set of labels.
    pub fn gauges<L: EncodeLabelSet, V: EncodeGaugeValue, I: IntoIterator<Item = (L, V)>>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl FnOnce() -> I,
    ) -> Result<(), Error> {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in samples() {
            metric.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    /// A histogram without labels: upper ends of its buckets in microseconds, counts of each and beyond the last, and the
    /// sum in seconds.
    pub fn histogram(
        &mut self,
        name: &str,
        help: &str,
        ends_us: &[u64],
        (counts, sum_s): (&[u64], f64),
    ) -> Result<(), Error> {
        let unit = Unit::Seconds;
        let mut metric = self.0.encode_descriptor(name, help, Some(&unit), MetricType::Histogram)?;
        let ends_s = ends_us.iter().map(|&us| us as f64 / 1e6).chain([f64::MAX]);
        let buckets: Vec<(f64, u64)> = ends_s.zip(counts.iter().copied()).collect();
        metric.encode_histogram::<NoLabelSet>(sum_s, counts.iter().sum(), &buckets, None)
    }

    /// A histogram for each set of labels, as [`Out::histogram`] writes one.
    pub fn histograms<L: EncodeLabelSet, I: IntoIterator<Item = (L, (Vec<u64>, f64))>>(
        &mut self,
        name: &str,
        help: &str,
        ends_us: &[u64],
        samples: impl FnOnce() -> I,
    ) -> Result<(), Error> {
        let unit = Unit::Seconds;
        let mut metric = self.0.encode_descriptor(name, help, Some(&unit), MetricType::Histogram)?;
        for (labels, (counts, sum_s)) in samples() {
            let ends_s = ends_us.iter().map(|&us| us as f64 / 1e6).chain([f64::MAX]);
            let buckets: Vec<(f64, u64)> = ends_s.zip(counts).collect();
            let count = buckets.iter().map(|(_, n)| n).sum();
            metric.encode_family(&labels)?.encode_histogram::<NoLabelSet>(sum_s, count, &buckets, None)?;
        }
        Ok(())
    }
}
