//! Labels at the ends of lines, moved apart where they would cover one another.

/// Places of labels, by index, as near to the wanted ones as they can be: `distance` apart at least, from `top` to `bottom`, in the
/// order of the wanted places. Where there is not room for all of them, they are as far apart as the room allows.
pub(crate) fn apart(wanted: &[f64], distance: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&left, &right| wanted[left].total_cmp(&wanted[right]));
    let gaps = wanted.len().saturating_sub(1).max(1) as f64;
    let distance = distance.min(((bottom - top) / gaps).max(0.0));
    let mut places = wanted.to_vec();
    // Downwards each keeps its distance to the one above, then upwards from the lower end of the room.
    let mut least = top;
    for &index in &order {
        places[index] = places[index].max(least);
        least = places[index] + distance;
    }
    let mut most = bottom;
    for &index in order.iter().rev() {
        places[index] = places[index].min(most);
        most = places[index] - distance;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_are_far_apart_stay() {
        assert_eq!(apart(&[50.0, 10.0, 90.0], 12.0, 0.0, 100.0), [50.0, 10.0, 90.0]);
        assert_eq!(apart(&[], 12.0, 0.0, 100.0), [0.0; 0]);
    }

    #[test]
    fn labels_are_moved_apart_in_their_order() {
        assert_eq!(apart(&[50.0, 50.0, 49.0], 10.0, 0.0, 100.0), [59.0, 69.0, 49.0]);
        assert_eq!(apart(&[98.0, 99.0], 10.0, 0.0, 100.0), [90.0, 100.0]);
        assert_eq!(apart(&[-5.0, 200.0], 10.0, 0.0, 100.0), [0.0, 100.0]);
    }

    #[test]
    fn too_many_labels_share_the_room() {
        assert_eq!(apart(&[5.0, 5.0, 5.0], 60.0, 0.0, 100.0), [0.0, 50.0, 100.0]);
    }
}
