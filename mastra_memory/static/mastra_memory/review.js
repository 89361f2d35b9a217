// Keys, help, pictures on demand, the way to the message one came for, and a guard over drafts.
// Reading needs none of it.
"use strict";
document.documentElement.classList.add("mm-scripted");

const onList = document.body?.classList.contains("mm-threads") ?? false;
const ROW = onList ? "#result_list tbody tr" : ".mm-message";
const rows = () => [...document.querySelectorAll(ROW)];
const current = () => document.activeElement?.closest(ROW);

function goTo(row) {
    if (!row) return;
    (onList ? row.querySelector(".mm-title") : row).focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
}

function step(by) {
    const all = rows();
    const at = all.indexOf(current());
    goTo(at < 0 ? all[by > 0 ? 0 : all.length - 1] : all[Math.min(Math.max(at + by, 0), all.length - 1)]);
}

function press(selector) {
    const found = document.querySelector(selector);
    if (found) found.click();
}

function focusOn(selector) {
    document.querySelector(selector)?.focus();
}

function writeNote() {
    const actions = current()?.querySelector(".mm-do");
    if (!actions) return focusOn("#mm-note");
    actions.open = true;
    actions.querySelector("textarea")?.focus();
}

function chooseAnswer(select, event) {
    const answer = select.options[Number(event.key)];  // the first option is empty
    if (!answer) return;
    event.preventDefault();
    select.value = answer.value;
}

function showKeys() {
    document.getElementById("mm-keys")?.showModal();
}

function editMessage() {
    const link = current()?.querySelector('a[href*="/edit/message/"]');
    if (link) location.assign(link.href);
}

const LIST_KEYS = {
    j: () => step(1),
    k: () => step(-1),
    x: () => current()?.querySelector(".action-select")?.click(),
    a: () => focusOn("#changelist-form select[name=action]"),
    n: () => press("#next-in-queue"),
    "/": () => focusOn("#searchbar"),
    "?": showKeys,
};

const KEYS = onList ? LIST_KEYS : {
    j: () => step(1),
    k: () => step(-1),
    n: () => press("#next-in-queue"),
    r: () => press('[data-key="r"]'),
    t: () => press('[data-key="t"]'),
    f: () => press('[data-key="f"]'),
    s: () => focusOn("#mm-status"),
    g: () => focusOn(".mm-score"),
    "#": () => focusOn("#mm-tag"),
    c: writeNote,
    e: editMessage,
    "/": () => focusOn("#mm-find"),
    u: () => press('[data-jump="unread"]'),
    m: () => press('[data-jump="note"]'),
    x: () => press('[data-jump="error"]'),
    l: () => press('.breadcrumbs a[href$="/thread/"]'),
    "?": showKeys,
};

document.addEventListener("keydown", (event) => {
    const field = event.target.closest("input, textarea, select, dialog[open]");
    if (field && !(onList && field.matches(".action-select"))) {
        if (field.matches(".mm-score") && /^[1-9]$/.test(event.key)) chooseAnswer(field, event);
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) field.form?.requestSubmit();
        if (event.key === "Escape" && !field.matches("dialog")) field.blur();
        return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
    event.preventDefault();
    KEYS[event.key]();
});

document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-open]");
    if (opener) document.getElementById(opener.dataset.open)?.showModal();
    if (event.target.closest("[data-print]")) window.print();
});

// An address that says only what was asked for can be read and shared.
document.addEventListener("formdata", (event) => {
    if (event.target.method !== "get") return;
    for (const [name, value] of [...event.formData]) if (!value) event.formData.delete(name);
    if (onList && ![...event.formData].length) event.formData.append("all", "1");
});

// What somebody is writing is not lost by a key, a link, or the form next to it.
let sending = null;
document.addEventListener("submit", (event) => { sending = event.target; });
window.addEventListener("beforeunload", (event) => {
    // A select without a chosen option shows its first one.
    const initial = (select) => [...select.options].find((option) => option.defaultSelected) ?? select.options[0];
    const isChanged = (field) => field.value !== (field.matches("select") ? initial(field)?.value : field.defaultValue);
    const fields = document.querySelectorAll("textarea, input.mm-wide, #mm-review :is(select, input:not([type=hidden]))");
    if ([...fields].some((field) => field.form !== sending && isChanged(field))) event.preventDefault();
});

document.addEventListener("toggle", (event) => {
    if (!event.target.matches?.(".mm-lazy") || !event.target.open) return;
    for (const image of event.target.querySelectorAll("img[data-src]")) {
        image.src = image.dataset.src;
        image.removeAttribute("data-src");
    }
}, true);

function toTarget() {
    const target = document.querySelector("[data-target]");
    if (!target) return;
    target.focus({ preventScroll: true });
    const fits = target.offsetHeight < window.innerHeight * 0.6;
    target.scrollIntoView({ block: fits ? "center" : "start" });
}

// Once more when the pictures above it have taken their place, unless one has begun to read.
document.addEventListener("DOMContentLoaded", toTarget);
const onLoad = new AbortController();
window.addEventListener("load", toTarget, onLoad);
for (const kind of ["wheel", "touchmove", "keydown"])
    window.addEventListener(kind, () => onLoad.abort(), { once: true, passive: true });
