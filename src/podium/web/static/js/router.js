// The address after # says which page is shown: #/pods/shop/web-0.
import { useEffect, useState } from "./dom.js";

const parts = () =>
  location.hash
    .replace(/^#\/?/, "")
    .split("/")
    .filter(Boolean)
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });

export function useRoute() {
  const [route, setRoute] = useState(parts());
  useEffect(() => {
    const changed = () => location.hash !== "#main" && setRoute(parts());
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return route;
}

export const go = (href) => {
  location.hash = href;
};

export const podLink = (key) => {
  const [namespace, name] = key.split("/");
  return `#/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
};

export const nodeLink = (name) => `#/nodes/${encodeURIComponent(name)}`;
