// The address after # says which page is shown: #/pods/shop/web-0.
import { useEffect, useState } from "./dom.js";

const parts = () =>
  location.hash
    .replace(/^#\/?/, "")
    .split("?")[0]
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

// What follows ? in the address after #: #/pending?namespace=shop.
const parameters = () => location.hash.split("?")[1] || "";

export function useParameters() {
  const [found, setFound] = useState(parameters());
  useEffect(() => {
    const changed = () => setFound(parameters());
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return new URLSearchParams(found);
}

// Change the parameters of the page without a new entry in the history of the browser.
export function setParameters(values) {
  const given = new URLSearchParams(Object.entries(values).filter(([, value]) => value));
  const [path] = location.hash.split("?");
  history.replaceState(null, "", `${path || "#/"}${given.size ? `?${given}` : ""}`);
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

export const go = (href) => {
  location.hash = href;
};

export const podLink = (key) => {
  const [namespace, name] = key.split("/");
  return `#/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
};

export const groupLink = (key) => podLink(key).replace("#/pods/", "#/groups/");

export const nodeLink = (name) => `#/nodes/${encodeURIComponent(name)}`;
