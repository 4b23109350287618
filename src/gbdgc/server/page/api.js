// Talking to the service. Addresses are relative, so that the page also works behind a proxy's prefix.

const RETRIES = 4;
const LONGEST_WAIT = 10;

/** What the service answered instead of a count. */
export class Problem extends Error {
  constructor(message, nextStep = "") {
    super(message);
    this.nextStep = nextStep;
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

async function request(address, options) {
  for (let retry = 0; ; retry += 1) {
    const token = sessionStorage.getItem("token");
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
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
    if (answer.ok) return answer.json();
    if (answer.status === 401) {
      await askForToken();
    } else if (answer.status === 503 && retry < RETRIES) {
      await pause(Math.min(Number(answer.headers.get("Retry-After")) || 1, LONGEST_WAIT));
    } else {
      const { error } = await answer.json().catch(() => ({ error: { message: `Status ${answer.status}` } }));
      throw new Problem(error.message, error.next_step);
    }
    options.signal?.throwIfAborted();
  }
}

function askForToken() {
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
