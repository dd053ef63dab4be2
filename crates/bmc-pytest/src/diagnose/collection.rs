//! From errors of the collection to advice: sorts them by what is wrong and says each thing once.
//!
//! Must not look at terminal text where the plugin sent a field.

use super::groups::{self, Group};
use super::{Advice, CollectError, Context};

/// Names what is wrong, one piece of advice for each cause, those with the most files first.
pub fn from_collection(errors: &[CollectError], context: &Context) -> Vec<Advice> {
    let mut groups: Vec<(Group, Vec<&CollectError>)> = Vec::new();
    for error in errors {
        let group = groups::group_of(error, context);
        match groups.iter_mut().find(|(known, _)| *known == group) {
            Some((_, members)) => members.push(error),
            None => groups.push((group, vec![error])),
        }
    }
    // Stable: causes with as many files stay in the order pytest met them.
    groups.sort_by_key(|(_, members)| std::cmp::Reverse(members.len()));
    groups
        .iter()
        .map(|(group, members)| groups::advise(group, members, context))
        .collect()
}

#[cfg(test)]
#[path = "collection_tests.rs"]
mod tests;
