// Keys, help, pictures on demand, and the way to the message one came for. Reading needs none of it.
"use strict";
document.documentElement.classList.add("mm-scripted");

const messages = () => [...document.querySelectorAll(".mm-message")];
const current = () => document.activeElement?.closest(".mm-message");

function goTo(message) {
    if (!message) return;
    message.focus({ preventScroll: true });
    message.scrollIntoView({ block: "nearest" });
}

function step(by) {
    const all = messages();
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

function editMessage() {
    const link = current()?.querySelector('a[href*="/edit/message/"]');
    if (link) location.assign(link.href);
}

const KEYS = {
    j: () => step(1),
    k: () => step(-1),
    n: () => press("#next-in-queue"),
    r: () => press('[data-key="r"]'),
    t: () => press('[data-key="t"]'),
    f: () => press('[data-key="f"]'),
    s: () => focusOn("#mm-status"),
    "#": () => focusOn("#mm-tag"),
    c: writeNote,
    e: editMessage,
    "/": () => focusOn("#mm-find, #searchbar"),
    u: () => press('[data-jump="unread"]'),
    x: () => press('[data-jump="error"]'),
    l: () => press('.breadcrumbs a[href$="/thread/"]'),
    "?": () => document.getElementById("mm-keys")?.showModal(),
};

document.addEventListener("keydown", (event) => {
    const field = event.target.closest("input, textarea, select, dialog[open]");
    if (field) {
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
});

document.addEventListener("toggle", (event) => {
    if (!event.target.matches?.(".mm-lazy") || !event.target.open) return;
    for (const image of event.target.querySelectorAll("img[data-src]")) {
        image.src = image.dataset.src;
        image.removeAttribute("data-src");
    }
}, true);

document.addEventListener("DOMContentLoaded", () => {
    const target = document.querySelector("[data-target]");
    if (target) {
        target.focus({ preventScroll: true });
        target.scrollIntoView({ block: "center" });
    }
});
