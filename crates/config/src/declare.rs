//! The declaration of a table. One list of keys generates its struct, its documentation and schema, its
//! reader and its effective values.

use std::time::Duration;

use plimsoll_policy::Weight;

use crate::keys::KeyKind;
use crate::reader::{ConfigReader, DeclaredTable};
use crate::value::{ConfigValue, show_duration, show_size};

/// Keys with their values.
pub(crate) type Entries = Vec<(&'static str, ConfigValue)>;

/// A type that a key can have.
pub(crate) trait KeyValue: Sized {
    /// Reads the key `name`. Records errors and returns the default, if there is one.
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Self>;

    /// The value as a user would write it under a key of this kind; `None` if the key would be omitted.
    fn show(&self, kind: KeyKind) -> Option<ConfigValue>;
}

/// An alternative form of a type's values in the file.
pub(crate) trait KeyForm<T> {
    /// See [`KeyValue::read`].
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<T>;

    /// See [`KeyValue::show`].
    fn show(value: &T) -> Option<ConfigValue>;
}

/// A value made up of several keys.
pub(crate) trait KeyGroup: Sized {
    /// Reads all of its keys, like [`KeyValue::read`].
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>) -> Option<Self>;

    /// Its keys as a user would write them.
    fn entries(&self) -> Entries;
}

impl KeyValue for u64 {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Self> {
        match section.kind(name) {
            Some(KeyKind::Size { .. }) => reader.size(section, name),
            _ => Some(reader.integer(section, name)),
        }
    }

    fn show(&self, kind: KeyKind) -> Option<ConfigValue> {
        Some(match kind {
            KeyKind::Size { .. } => ConfigValue::Text(show_size(*self)),
            _ => ConfigValue::Integer(*self),
        })
    }
}

/// Whole numbers of the width that their key's range needs.
macro_rules! narrower {
    ($($number:ty),*) => { $(
        impl KeyValue for $number {
            fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Self> {
                u64::read(reader, section, name).map(|n| Self::try_from(n).unwrap_or(Self::MAX))
            }

            fn show(&self, kind: KeyKind) -> Option<ConfigValue> {
                (*self as u64).show(kind)
            }
        }
    )* };
}

narrower!(u32, usize);

impl KeyValue for bool {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Self> {
        Some(reader.flag(section, name))
    }

    fn show(&self, _: KeyKind) -> Option<ConfigValue> {
        Some(ConfigValue::Flag(*self))
    }
}

/// A size or none.
impl KeyValue for Option<u64> {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Self> {
        Some(reader.size(section, name))
    }

    fn show(&self, _: KeyKind) -> Option<ConfigValue> {
        Some(ConfigValue::Text(self.map_or_else(|| "none".to_owned(), show_size)))
    }
}

impl KeyValue for Weight {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Self> {
        Some(Weight::new(reader.number(section, name)).unwrap_or(Weight::ONE))
    }

    fn show(&self, _: KeyKind) -> Option<ConfigValue> {
        Some(ConfigValue::Number(self.as_f64()))
    }
}

impl KeyValue for Duration {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Self> {
        Some(reader.duration(section, name))
    }

    fn show(&self, _: KeyKind) -> Option<ConfigValue> {
        Some(ConfigValue::Text(show_duration(*self)))
    }
}

/// Declares a table: a struct with a field for each key, its `SECTION` for documentation and schema, its reader and its
/// effective values.
///
/// A key is `"KEY" FIELD: TYPE = DEFAULT, KIND;`. `=> FORM` after the kind selects a [`KeyForm`], and `,
/// restart` says that only a restart applies a change. A field made up of several keys comes first, as `{
/// FIELD: TYPE = KEYS }`, and is a [`KeyGroup`].
macro_rules! keys {
    (
        $(#[doc = $struct_doc:literal])+
        [$name:literal$(, $many:ident)?] $(#[$attribute:meta])* $vis:vis struct $struct:ident {
            $( { $(#[doc = $group_doc:literal])+ $group:ident: $group_ty:ty = $group_keys:expr } )?
            $( $(#[doc = $doc:literal])+ $key:literal $field:ident: $ty:ty = $default:expr, $kind:expr
                $(=> $form:ty)? $(, $restart:ident)?; )*
        }
    ) => {
        $(#[doc = $struct_doc])+
        #[derive(Debug, Clone, PartialEq, Eq)]
        $(#[$attribute])*
        $vis struct $struct {
            $( $(#[doc = $group_doc])+ $vis $group: $group_ty, )?
            $( $(#[doc = $doc])+ $vis $field: $ty, )*
        }

        impl $struct {
            pub(crate) const SECTION: $crate::keys::SectionSpec = $crate::keys::SectionSpec {
                name: $name,
                many: $crate::declare::is!($($many)?),
                policy_key: None,
                help: concat!($($struct_doc),+),
                group: $crate::declare::or_none!($($group_keys)?),
                keys: &[ $( $crate::keys::KeySpec {
                    name: $key,
                    kind: $kind,
                    default: $default,
                    help: concat!($($doc),+),
                    restart: $crate::declare::is!($($restart)?),
                }, )* ],
            };

            /// Reads the table. Records errors; `None` if a value is wrong and has no default.
            pub(crate) fn read<'a>(
                reader: &mut $crate::reader::ConfigReader<'a>,
                section: &$crate::reader::DeclaredTable<'a>,
            ) -> Option<Self> {
                $( let $group = <$group_ty as $crate::declare::KeyGroup>::read(reader, section); )?
                $( let $field = $crate::declare::read!($ty $(, $form)?)(reader, section, $key); )*
                Some(Self { $( $group: $group?, )? $( $field: $field?, )* })
            }

            /// The keys with their values, as a user would write them.
            pub(crate) fn entries(&self) -> $crate::declare::Entries {
                let mut out = $crate::declare::Entries::new();
                $( out.extend($crate::declare::KeyGroup::entries(&self.$group)); )?
                $(
                    let shown = $crate::declare::show!($ty, &self.$field, $kind $(, $form)?);
                    out.extend(shown.map(|value| ($key, value)));
                )*
                out
            }
        }
    };
}

/// Declares an enum whose values are words under a key, the default first.
macro_rules! words {
    (
        $(#[doc = $enum_doc:literal])+
        pub enum $enum:ident { $first:ident = $first_word:literal / $first_doc:literal
            $(, $value:ident = $word:literal / $doc:literal)+ $(,)? }
    ) => {
        $(#[doc = $enum_doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $enum {
            #[doc = $first_doc]
            $first,
            $( #[doc = $doc] $value, )+
        }

        impl $enum {
            /// The words, the default first.
            pub const WORDS: &'static [&'static str] = &[$first_word $(, $word)+];
        }

        impl $crate::declare::KeyValue for $enum {
            fn read<'a>(
                reader: &mut $crate::reader::ConfigReader<'a>,
                section: &$crate::reader::DeclaredTable<'a>,
                name: &str,
            ) -> Option<Self> {
                Some(match reader.choice(section, name) {
                    $( $word => Self::$value, )+
                    _ => Self::$first,
                })
            }

            fn show(&self, _: $crate::keys::KeyKind) -> Option<$crate::value::ConfigValue> {
                Some($crate::value::ConfigValue::Text(self.to_string()))
            }
        }

        /// Its word in the configuration.
        impl std::fmt::Display for $enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(match self { Self::$first => $first_word, $( Self::$value => $word, )+ })
            }
        }
    };
}

/// Whether a marker is present.
macro_rules! is {
    () => {
        false
    };
    ($marker:ident) => {
        true
    };
}

/// The keys of a group, if there is one.
macro_rules! or_none {
    () => {
        &[]
    };
    ($keys:expr) => {
        $keys
    };
}

/// Reads a field.
macro_rules! read {
    ($ty:ty) => {
        <$ty as $crate::declare::KeyValue>::read
    };
    ($ty:ty, $form:ty) => {
        <$form as $crate::declare::KeyForm<$ty>>::read
    };
}

/// Shows a field.
macro_rules! show {
    ($ty:ty, $value:expr, $kind:expr) => {
        <$ty as $crate::declare::KeyValue>::show($value, $kind)
    };
    ($ty:ty, $value:expr, $kind:expr, $form:ty) => {
        <$form as $crate::declare::KeyForm<$ty>>::show($value)
    };
}

pub(crate) use {is, keys, or_none, read, show, words};
