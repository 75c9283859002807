// Passkeys, by the JSON that WebAuthn itself defines: options from the server, credentials to it.

/** Why there are none here; nothing if there can be. A passkey is of a name, which an address is not. */
export async function reason(call) {
  if (!window.PublicKeyCredential?.parseCreationOptionsFromJSON) return "This browser knows no passkeys.";
  const probe = await call("OPTIONS", "/api/mfa/passkeys/register");
  if (probe.status === 404) return "Passkeys are off: the policy of this server has none.";
  if (/^[\d.]+$|:/.test(location.hostname)) return `Passkeys need a name: open http://localhost:${location.port}/mfa`;
  return null;
}

/** Makes a passkey and has the server keep it; the last answer. */
export async function makePasskey(guarded, call) {
  const asked = await guarded("POST", "/api/mfa/passkeys/register");
  if (asked.status !== 200) return asked;
  return touched(async () => {
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(asked.body.publicKey);
    const made = await navigator.credentials.create({ publicKey });
    return call("POST", "/api/mfa/passkeys/confirm", { challenge: asked.body.challenge, credential: made.toJSON() });
  });
}

/** Has a passkey answer a challenge, for one action if there is one; the last answer. */
export async function provePasskey(call, action) {
  const asked = await call("POST", "/api/mfa/passkeys/challenge", action);
  if (asked.status !== 200) return asked;
  return touched(async () => {
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(asked.body.publicKey);
    const proof = await navigator.credentials.get({ publicKey });
    const { challenge } = asked.body;
    return call("POST", "/api/mfa/verify", { factor: "passkey", challenge, credential: proof.toJSON(), ...action });
  });
}

/** Who does not touch his key has said no, and the server was asked nothing. */
async function touched(ceremony) {
  try {
    return await ceremony();
  } catch (error) {
    if (!(error instanceof DOMException)) throw error;
    return { status: 0, headers: new Headers(), body: { message: error.message } };
  }
}
