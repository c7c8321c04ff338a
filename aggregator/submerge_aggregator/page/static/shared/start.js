// What every view begins with: the group that it is about, and the way out of a session.

import { get, post } from "./ask.js";
import { listen } from "./live.js";
import { make } from "./build.js";

/** Return which aggregator it is and the group that the address names, or the first one. */
export async function start() {
  const about = await patiently(() => get(["api", ""]));
  const given = new URLSearchParams(location.search).get("group");
  const group = about.groups.includes(given) ? given : about.groups[0];
  const choice = document.getElementById("group");
  choice.replaceChildren(
    ...about.groups.map((each) => make("option", { value: each, selected: each === group }, each)),
  );
  choice.addEventListener("change", () => {
    location.search = `?group=${encodeURIComponent(choice.value)}`;
  });
  for (const link of document.querySelectorAll("a[data-keeps-group]")) {
    link.search = `?group=${encodeURIComponent(group)}`;
  }
  document.getElementById("logout")?.addEventListener("click", async () => {
    await post(["logout"]);
    location.reload();
  });
  listen();
  return { about, group };
}

// The page may be opened while the aggregator begins.
async function patiently(ask) {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      document.getElementById("link").textContent = error.message; // else the page stays blank
      if (error.status && error.status !== 503) {
        throw error;
      }
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
}
