//! Enums whose variants have names.

/// Makes enums of which each variant has a name in tables, lab files and messages. The name stands beside its variant,
/// so a new one does not compile without. Their `ALL` lists the variants in the order of their declaration, `name`
/// gives the name of one, `by_name` the variant of a name, and `Display` shows the name.
///
/// ```
/// aerostat_wire::named! {
///     /// Colour of a light.
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub enum Light {
///         /// Cars stop.
///         Red = "red",
///         /// Cars go.
///         Green = "green",
///     }
/// }
/// assert_eq!(Light::ALL.map(Light::name), ["red", "green"]);
/// assert_eq!((Light::by_name("green"), Light::by_name("blue")), (Some(Light::Green), None));
/// assert_eq!(Light::Red.to_string(), "red");
/// ```
#[macro_export]
macro_rules! named {
    ($(
        $(#[$about:meta])*
        $vis:vis enum $names:ident {
            $($(#[$doc:meta])* $variant:ident = $name:literal,)+
        }
    )+) => {$(
        $(#[$about])*
        $vis enum $names {
            $($(#[$doc])* $variant,)+
        }
        #[allow(dead_code, reason = "some names are only shown, others only walked")]
        impl $names {
            /// All variants, in the order of their declaration.
            $vis const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];
            /// The name in tables, lab files and messages.
            #[must_use]
            $vis const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
            /// The variant with this name.
            #[must_use]
            $vis fn by_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.name() == name)
            }
        }
        impl ::core::fmt::Display for $names {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(self.name())
            }
        }
    )+};
}
