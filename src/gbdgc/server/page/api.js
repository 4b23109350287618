// Talking to the service. Addresses are relative, so that the page also works behind a proxy's prefix.

const RETRIES = 4;
const LONGEST_WAIT = 10;
const TOKEN_DIALOG = `
  <dialog id="token-dialog" aria-labelledby="token-title">
    <form method="dialog">
      <h2 id="token-title">This service wants a token</h2>
      <p class="dim">Whoever runs it can tell you. It is forgotten when this tab is closed.</p>
      <p id="token-refused" role="alert" hidden>That was not the right one.</p>
      <label for="token">Token</label>
      <input id="token" type="password" autocomplete="off" required>
      <button class="primary">Go on</button>
    </form>
  </dialog>
`;

/** What the service answered instead of a count. */
export class Problem extends Error {
  constructor(message, nextStep = "", status = 0) {
    super(message);
    this.nextStep = nextStep;
    this.status = status;
  }
}

export const model = (signal) => request("v1/model", { signal });

/** Count one picture; a full line is waited for. */
export async function count(blob, signal) {
  const body = new FormData();
  body.append("image", blob, "image");
  body.append("overlay", "true");
  body.append("density", "true");
  body.append("points", "true");
  return request("v1/count", { method: "POST", body, signal });
}

// Of the labelling page

const named = (kind, name) => `v1/${kind}/${name.split("/").map(encodeURIComponent).join("/")}`;

export const folder = () => request("v1/folder");
export const heads = (name) => request(named("heads", name));
export const seen = (name) => request(named("seen", name));
export const image = (name) => request(named("image", name), {}, (answer) => answer.blob());

/** Replace the heads of a picture, if they still are those with this tag. */
export const saveHeads = (name, points, tag) =>
  request(named("heads", name), { method: "PUT", body: JSON.stringify({ points }), headers: { "If-Match": tag } });

async function request(address, options = {}, read = (answer) => answer.json()) {
  for (let retry = 0; ; retry += 1) {
    const token = sessionStorage.getItem("token");
    const headers = { ...options.headers, ...(token && { Authorization: `Bearer ${token}` }) };
    let answer;
    try {
      answer = await fetch(address, { ...options, headers });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      if (token && !/^[\x20-\x7e]*$/.test(token)) {
        await askForToken(); // such a token cannot be sent, and no service takes one
        continue;
      }
      throw new Problem("The service does not answer.", "See whether it still runs, and try again.");
    }
    if (answer.ok) return read(answer);
    if (answer.status === 401) {
      await askForToken();
    } else if (answer.status === 503 && retry < RETRIES) {
      await pause(Math.min(Number(answer.headers.get("Retry-After")) || 1, LONGEST_WAIT));
    } else {
      const { error } = await answer.json().catch(() => ({ error: { message: `Status ${answer.status}` } }));
      throw new Problem(error.message, error.next_step, answer.status);
    }
    options.signal?.throwIfAborted();
  }
}

function askForToken() {
  if (!document.getElementById("token-dialog")) document.body.insertAdjacentHTML("beforeend", TOKEN_DIALOG);
  const dialog = document.getElementById("token-dialog");
  const field = document.getElementById("token");
  field.value = "";
  document.getElementById("token-refused").hidden = !sessionStorage.getItem("token");
  if (!dialog.open) dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      sessionStorage.setItem("token", field.value);
      resolve();
    }, { once: true });
  });
}

const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
