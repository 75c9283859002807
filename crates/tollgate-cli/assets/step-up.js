// What RFC 9470 asks for, asked of the person: a factor, and then the request is made again.

import { find, make, span } from "./server.js";

/** The parameters of `WWW-Authenticate: Bearer a="b", ...`; none if it is another challenge. */
export function challengeOf({ status, headers }) {
  const text = (status === 401 && headers.get("www-authenticate")) || "";
  const challenge = Object.fromEntries([...text.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]));
  return challenge.error === "insufficient_user_authentication" ? challenge : null;
}

/** What a challenge wants, for people. */
export function meaning({ error_description, acr_values, max_age }) {
  const age = max_age && `no older than ${span(Number(max_age) * 1000)}`;
  const wanted = [acr_values && `of class “${acr_values}”`, age].filter(Boolean).join(", ");
  return `${error_description ?? "You have to prove who you are."} Wanted is an authentication ${wanted}.`;
}

/**
 * Has the person prove himself if `answer` asks for it: `{grant}` once he has, nothing if it does not or he would not.
 * A grant is for the one action that the answer named.
 */
export async function prove(answer, { factors, names, call, provePasskey }) {
  const challenge = challengeOf(answer);
  if (!challenge) return null;
  const dialog = find("#step-up");
  const options = factors.map(({ factor }) => make("option", { value: factor }, names[factor] ?? factor));
  find("#step-up-factor").replaceChildren(...(options.length ? options : [make("option", { value: "" }, "you have no factor yet")]));
  find("#step-up-why").textContent = meaning(challenge);
  find("#step-up-refused").textContent = "";
  find("#step-up-form button").disabled = !options.length;
  fit();
  dialog.showModal();
  return new Promise((settle) => {
    const off = new AbortController();
    const close = (proof) => {
      off.abort();
      dialog.close();
      settle(proof);
    };
    const submit = async (event) => {
      event.preventDefault();
      const factor = find("#step-up-factor").value;
      const action = answer.body?.action && { action: answer.body.action };
      const typed = { factor, code: find("#step-up-code").value.trim(), ...action };
      const said = factor === "passkey" ? await provePasskey(call, action) : await call("POST", "/api/mfa/verify", typed);
      if (said.status === 200) return close({ grant: said.body.grant });
      find("#step-up-refused").textContent = refusal(said);
      find("#step-up-code").select();
    };
    const { signal } = off;
    find("#step-up-form").addEventListener("submit", submit, { signal });
    find("#step-up-factor").addEventListener("change", fit, { signal });
    find("#step-up-cancel").addEventListener("click", () => close(null), { signal });
    dialog.addEventListener("cancel", () => close(null), { signal });
  });
}

/** The field for what the factor takes. */
function fit() {
  const factor = find("#step-up-factor").value;
  const field = find("#step-up-code");
  field.value = "";
  field.required = factor === "totp" || factor === "recovery";
  field.inputMode = factor === "totp" ? "numeric" : "text";
  find("#step-up-typed").hidden = !field.required;
}

function refusal({ status, body, headers }) {
  const left = body?.attempts_left === undefined ? "" : ` ${body.attempts_left} more at once.`;
  const wait = headers.get("retry-after") ?? body?.retryAfter;
  return `${status}: ${body?.message ?? body?.error ?? "no answer"}.${left}${wait ? ` Again in ${span(wait * 1000)}.` : ""}`;
}
