//! Where a prompt is written: a real form, so that it also works without script. What was typed is kept until it was
//! taken; an error is said beside the button.

use std::sync::Arc;

use leptos::html::{Form, Select, Textarea};
use leptos::prelude::*;
use protocol::api::Problem;

use crate::content::scope::scoped;
use crate::data::connection::{ConnectionState, UNREACHABLE};
use crate::data::live::Live;
use crate::data::port::{ModelChoice, Setup};
use crate::data::session_store::SessionStore;
use crate::ui::dynamic::{dynamic, dynamic_view, effect};
use crate::ui::{Button, ButtonKind};

#[cfg(feature = "hydrate")]
mod browser;

/// What is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Draft {
    /// The prompt.
    pub prompt: String,
    /// The chosen model, as `provider/model`; the server's default when empty.
    pub model: String,
}

impl Draft {
    /// The provider's and the model's id.
    pub fn choice(&self) -> (Option<String>, Option<String>) {
        match self.model.split_once('/') {
            Some((provider, model)) => (Some(provider.to_owned()), Some(model.to_owned())),
            None => (None, None),
        }
    }
}

/// What a composer starts.
#[derive(Clone, Copy)]
pub enum Target {
    /// A new session with its first run.
    NewSession,
    /// Another run of a session.
    Session(SessionStore),
}

/// A draft on its way: whether one is, what went wrong, and what keeps a second try from doing things twice.
#[derive(Clone, Copy)]
pub struct Sending {
    is_busy: RwSignal<bool>,
    problem: RwSignal<Option<Problem>>,
    #[cfg_attr(
        not(feature = "hydrate"),
        expect(dead_code, reason = "only the browser sends")
    )]
    tried: StoredValue<Option<Tried>>,
}

/// A draft that was tried, with the key of its request and the session that was made for it.
#[derive(Debug, Clone)]
#[cfg_attr(
    not(feature = "hydrate"),
    expect(dead_code, reason = "only the browser sends")
)]
struct Tried {
    draft: Draft,
    key: String,
    session: Option<protocol::id::SessionId>,
}

impl Sending {
    /// Nothing on its way.
    pub fn new() -> Self {
        Self {
            is_busy: RwSignal::new(false),
            problem: RwSignal::new(None),
            tried: StoredValue::new(None),
        }
    }

    /// One that stands like this.
    #[cfg(any(test, debug_assertions))]
    pub fn standing(is_busy: bool, problem: Option<Problem>) -> Self {
        Self {
            is_busy: RwSignal::new(is_busy),
            problem: RwSignal::new(problem),
            ..Self::new()
        }
    }

    /// Whether something is on its way.
    pub fn is_busy(self) -> bool {
        self.is_busy.get()
    }
}

impl Default for Sending {
    fn default() -> Self {
        Self::new()
    }
}

/// The composer.
#[component]
pub fn Composer(
    /// What it starts.
    target: Target,
    /// What can be chosen.
    setup: Arc<Setup>,
    /// Says what the text is for.
    #[prop(into)]
    placeholder: Signal<String>,
    /// The words of the button.
    #[prop(into)]
    action_words: Signal<String>,
    /// How many lines it has at first.
    rows: &'static str,
    /// Shared with other controls that start the same.
    #[prop(optional)]
    sending: Sending,
    /// Called when a run was taken.
    #[prop(optional, into)]
    on_sent: Option<Callback<()>>,
) -> impl IntoView {
    let id = scoped("say");
    let form = NodeRef::<Form>::new();
    let text = NodeRef::<Textarea>::new();
    let model = NodeRef::<Select>::new();
    let action = match target {
        Target::NewSession => "/sessions".to_owned(),
        Target::Session(session) => format!("/s/{}/runs", untrack(|| session.session_id())),
    };
    #[cfg(feature = "hydrate")]
    let (on_submit, on_key) = (
        browser::on_submit(target, text, model, sending, on_sent),
        browser::on_key(form),
    );
    #[cfg(not(feature = "hydrate"))]
    let (on_submit, on_key) = (|_: leptos::ev::SubmitEvent| {}, |_: leptos::ev::KeyboardEvent| {});
    #[cfg(not(feature = "hydrate"))]
    let _ = on_sent;
    let live = Live::use_context();
    effect(move || {
        // Said once the server is there again, it would be untrue.
        let is_over = live.state() == ConnectionState::Live;
        let is_it = |problem: &Option<Problem>| {
            problem
                .as_ref()
                .is_some_and(|problem| problem.code == UNREACHABLE)
        };
        if is_over && sending.problem.with(is_it) {
            sending.problem.set(None);
        }
    });
    let problem = dynamic_view(move || {
        sending.problem.get().map(|problem| {
            view! { <p class="composer__note field__note--bad" role="alert">{problem.detail}</p> }
        })
    });
    view! {
        <form class="composer" method="post" action=action node_ref=form on:submit=on_submit>
            <label class="sr-only" for=id.clone()>"Prompt"</label>
            <textarea
                id=id
                name="prompt"
                rows=rows
                required=true
                placeholder=dynamic(move || placeholder.get())
                node_ref=text
                on:keydown=on_key
            ></textarea>
            {problem}
            <div class="composer__bar">
                <ModelSelect models=setup.models.clone() node_ref=model/>
                <span class="composer__end">
                    <span class="composer__hint muted"><kbd class="kbd">"Ctrl"</kbd>" "<kbd class="kbd">"↵"</kbd></span>
                    <Button kind=ButtonKind::Primary submit=true disabled=sending.is_busy>
                        {dynamic(move || action_words.get())}
                    </Button>
                </span>
            </div>
        </form>
    }
}

/// The models by provider; the default first.
#[component]
fn ModelSelect(models: Vec<ModelChoice>, node_ref: NodeRef<Select>) -> impl IntoView {
    let mut providers: Vec<(String, Vec<ModelChoice>)> = Vec::new();
    for choice in models {
        match providers
            .iter_mut()
            .find(|(provider, _)| *provider == choice.provider)
        {
            Some((_, models)) => models.push(choice),
            None => providers.push((choice.provider.clone(), vec![choice])),
        }
    }
    let is_one = providers.len() == 1;
    let options = |models: Vec<ModelChoice>| {
        models
            .into_iter()
            .map(|choice| {
                let value = format!("{}/{}", choice.provider, choice.model);
                view! { <option value=value>{choice.model}</option> }
            })
            .collect_view()
    };
    let groups: Vec<_> = providers
        .into_iter()
        .map(|(provider, models)| {
            if is_one {
                leptos::either::Either::Left(options(models))
            } else {
                leptos::either::Either::Right(view! { <optgroup label=provider>{options(models)}</optgroup> })
            }
        })
        .collect();
    (!groups.is_empty()).then(|| {
        view! {
            <select class="btn btn--quiet btn--sm" name="model" aria-label="Model" node_ref=node_ref>{groups}</select>
        }
    })
}

/// Prompts to try, while only the demo provider is set up: each starts a session.
#[component]
pub fn Samples(
    /// What can be started.
    setup: Arc<Setup>,
    /// What is on its way.
    sending: Sending,
) -> impl IntoView {
    let samples = setup
        .samples
        .iter()
        .map(|sample| {
            let prompt = sample.prompt.clone();
            #[cfg(feature = "hydrate")]
            let on_click = browser::on_sample(prompt.clone(), sending);
            #[cfg(not(feature = "hydrate"))]
            let on_click = |_: leptos::ev::MouseEvent| {};
            view! {
                <button
                    type="submit"
                    class="sample"
                    name="prompt"
                    value=prompt
                    disabled=dynamic(move || sending.is_busy())
                    on:click=on_click
                >
                    <b>{sample.title.clone()}</b>
                    <span>{sample.description.clone()}</span>
                </button>
            }
        })
        .collect_view();
    view! {
        <section aria-labelledby="samples-title">
            <h2 class="sr-only" id="samples-title">"Sample prompts"</h2>
            <form class="samples" method="post" action="/sessions">{samples}</form>
        </section>
    }
}
