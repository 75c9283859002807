// Second factors, as a product's own page would have them: enrol, step up, recover.
//
// Everything is asked of the routes that are deployed; this page knows no secret but those that it is shown.

import { ask, find, make, principalOf } from "./server.js";
import { makePasskey, provePasskey, reason } from "./passkeys.js";
import { prove } from "./step-up.js";

const NAMES = { totp: "Authenticator app", recovery: "Recovery codes", passkey: "Passkey" };
const MOST_EXCHANGES = 30;

let session = null;
let factors = [];

/** Asks as the person who has signed in, and shows what was said. */
async function call(method, path, body, headers) {
  const answer = await ask(method, path, { principal: session && principalOf(session), body, headers });
  show(method, path, answer);
  return answer;
}

function show(method, path, { status, headers, body }) {
  const kind = status < 400 ? "allowed" : status < 500 ? "denied" : "failed";
  const challenge = headers.get("www-authenticate");
  const said = make(
    "li",
    {},
    make("span", { class: "what" }, make("code", {}, `${method} ${path}`), make("span", { class: `tag ${kind}` }, `${status}`)),
    challenge && make("pre", {}, `WWW-Authenticate: ${challenge}`),
    make("pre", {}, JSON.stringify(discreet(body), null, 1)),
  );
  find("#said").prepend(said);
  [...find("#said").children].slice(MOST_EXCHANGES).forEach((old) => old.remove());
}

/** Pictures and secrets are shown where they belong, once. */
function discreet(body) {
  if (!body || Array.isArray(body)) return body;
  const { qr_svg, otpauth_uri, codes, ...rest } = body;
  return { ...rest, ...(qr_svg && { qr_svg: "…", otpauth_uri: "…" }), ...(codes && { codes: `${codes.length}, shown once` }) };
}

const say = (text) => (find("#status").textContent = text);
const refusal = ({ status, body }) => `${status}: ${body?.message ?? body?.detail ?? body?.error ?? "no answer"}`;

/** Asks, and asks again once the person has stepped up, if that is what is missing. */
async function guarded(method, path, body) {
  const first = await call(method, path, body);
  const proof = await prove(first, { factors, names: NAMES, call, provePasskey });
  if (!proof) return first;
  await refresh();
  return call(method, path, body, proof.grant && { "tollgate-grant": proof.grant });
}

async function signIn(event) {
  event.preventDefault();
  const { body } = await ask("GET", "/dev/stats");
  const auth_time = Math.floor(body.now_ms / 1000);
  session = { user: find("#user").value, tenant: "acme", plan: "free", origin_jti: crypto.randomUUID(), auth_time };
  find("#person").textContent = session.user;
  find("#principal").textContent = `x-dev-principal: ${principalOf(session)}`;
  find("#principal").hidden = false;
  for (const secret of ["#setup", "#recovery"]) find(secret).hidden = true;
  find("#codes").replaceChildren();
  find("#payout-result").textContent = "";
  await refresh();
  say(`${session.user} has signed in.`);
}

async function refresh() {
  const { status, body } = await call("GET", "/api/mfa/factors");
  factors = status === 200 ? body.factors : [];
  const rows = factors.map((factor) => {
    const left = factor.codes_left === undefined ? "" : `, ${factor.codes_left} left`;
    const since = factor.since ? `since ${new Date(factor.since * 1000).toISOString().slice(0, 16).replace("T", " ")}` : "";
    const until = factor.cooldown_until && new Date(factor.cooldown_until * 1000).toISOString().slice(0, 16).replace("T", " ");
    const cooling = until ? `, proves nothing until ${until}` : "";
    const name = factor.name || NAMES[factor.factor] || factor.factor;
    const remove = make("button", { type: "button", class: "plain", "data-remove": factor.factor, onclick: () => removed(factor) }, "Remove");
    remove.setAttribute("aria-label", `Remove ${name}`);
    return make("li", {}, make("strong", {}, name), make("span", { class: "soft small" }, since + left + cooling), remove);
  });
  find("#factors").replaceChildren(...(rows.length ? rows : [make("li", { class: "soft" }, "none yet")]));
  for (const button of ["#generate", "#payout button"]) find(button).disabled = false;
  find("#enrol").disabled = factors.some(({ factor }) => factor === "totp");
  await offerPasskeys();
}

async function removed({ factor, id }) {
  const path = `/api/mfa/factors/${factor}${id ? `/${encodeURIComponent(id)}` : ""}`;
  const answer = await guarded("DELETE", path);
  await refresh();
  say(answer.status === 200 ? `${NAMES[factor] ?? factor}: removed.` : refusal(answer));
}

async function enrol() {
  const answer = await guarded("POST", "/api/mfa/totp/enroll");
  if (answer.status !== 200) return say(refusal(answer));
  find("#qr").src = `data:image/svg+xml,${encodeURIComponent(answer.body.qr_svg)}`;
  find("#uri").textContent = answer.body.otpauth_uri;
  find("#setup").hidden = false;
  find("#confirm-code").value = "";
  find("#confirm-code").focus();
  say("Scan the code, and type what the app shows.");
}

async function confirmed(event) {
  event.preventDefault();
  const answer = await call("POST", "/api/mfa/totp/confirm", { code: find("#confirm-code").value.trim() });
  if (answer.status !== 200) return say(refusal(answer));
  find("#setup").hidden = true;
  find("#uri").textContent = "";
  find("#qr").removeAttribute("src");
  await refresh();
  say(answer.body.cooldown_until ? "The app is set up. It was added beside others, and proves nothing for a day." : "The app is set up, and this session has a second factor.");
}

async function generate() {
  const answer = await guarded("POST", "/api/mfa/recovery/generate");
  if (answer.status !== 200) return say(refusal(answer));
  const text = `${answer.body.codes.join("\n")}\n`;
  find("#codes").replaceChildren(...answer.body.codes.map((code) => make("li", {}, code)));
  find("#download-codes").href = `data:text/plain;charset=utf-8,${encodeURIComponent(text)}`;
  find("#copy-codes").onclick = () => copied(text, "The codes are copied.");
  find("#recovery").hidden = false;
  await refresh();
  say("Ten codes are made. Those made before are good no longer.");
}

const copied = (text, told) => navigator.clipboard.writeText(text).then(() => say(told), () => say("The browser lets nobody copy here."));

async function offerPasskeys() {
  const why = await reason(call);
  find("#add-passkey").disabled = Boolean(why);
  find("#passkeys").textContent = why ?? "A key of this device or of a stick: nothing to type, and nothing to phish.";
}

async function addPasskey() {
  const answer = await makePasskey(guarded, call);
  await refresh();
  say(answer.status === 200 ? "The passkey is added." : refusal(answer));
}

async function payOut(event) {
  event.preventDefault();
  const result = find("#payout-result");
  result.textContent = "";
  const answer = await guarded("PUT", "/api/payout-account", { iban: find("#iban").value });
  result.textContent = answer.status === 200 ? "200: it is changed." : refusal(answer);
  result.classList.toggle("denied", answer.status !== 200);
}

/** The link of a notice: asked first, since programs that look at messages follow links. */
async function cancelled() {
  const token = location.hash.startsWith("#cancel=") && location.hash.slice("#cancel=".length);
  if (!token) return;
  history.replaceState(null, "", location.pathname);
  if (!confirm("Cancel this change of second factors, and end all sessions?")) return;
  const answer = await call("POST", "/api/mfa/changes/cancel", { token });
  say(answer.status === 200 ? "The change is cancelled, and all sessions have ended." : refusal(answer));
}

cancelled();
find("#sign-in").addEventListener("submit", signIn);
find("#enrol").addEventListener("click", enrol);
find("#confirm").addEventListener("submit", confirmed);
find("#copy-uri").addEventListener("click", () => copied(find("#uri").textContent, "The address is copied."));
find("#generate").addEventListener("click", generate);
find("#add-passkey").addEventListener("click", addPasskey);
find("#payout").addEventListener("submit", payOut);
