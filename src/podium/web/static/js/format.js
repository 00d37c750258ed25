// Numbers, times and names as people read them.
const whole = new Intl.NumberFormat("en");

export const number = (value) => whole.format(value);

export const counted = (count, noun, plural = `${noun}s`) =>
  `${number(count)} ${count === 1 ? noun : plural}`;

export const percent = (share) => `${Math.round(share * 100)}%`;

export function age(seconds) {
  const past = Math.max(0, seconds);
  if (past < 60) return `${Math.floor(past)} s`;
  if (past < 3600) return `${Math.floor(past / 60)} min`;
  if (past < 86400) return `${Math.floor(past / 3600)} h`;
  return `${Math.floor(past / 86400)} d`;
}

export const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB");

// A time of any day: with the date, unless it is today.
export const moment = (seconds) => {
  const time = new Date(seconds * 1000);
  const today = time.toDateString() === new Date().toDateString();
  return today ? clock(seconds) : `${time.toLocaleDateString("en-CA")} ${clock(seconds)}`;
};

export const short = (priority) => priority.replace(/Priority$/, "") || priority;

// A place to break long names: before each capital.
export const breakable = (name) => name.replace(/([a-z0-9])([A-Z])/g, "$1\u200b$2");

export const taintText = ([key, value, effect]) =>
  `${key}${value ? `=${value}` : ""}${effect ? `:${effect}` : ""}`;

const SHORT = {
  memory: "mem",
  "ephemeral-storage": "disk",
};

export const resourceName = (name) => SHORT[name] || name.replace(/^.*\//, "");

export const zoneName = ([region, zone]) => zone || region || "no zone";

export const workloadName = ([namespace, kind, name]) =>
  name ? `${namespace}/${name}` : `${namespace} (single pods)`;
