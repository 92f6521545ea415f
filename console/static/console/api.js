// Shows the description of the interfaces, and lets it be tried with the rights of who is signed in.
// The viewer comes from this host; it is told nothing but where the description is.

const place = document.querySelector("#swagger");

// A session changes nothing without the token of its own pages.
function withToken(request) {
  if (new URL(request.url, location.href).origin === location.origin) {
    request.headers["X-CSRFToken"] = place.dataset.csrf;
  }
  return request;
}

// The viewer has a dark look of its own, which it wears by this class.
const theme = document.documentElement.dataset.theme;
const isDark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
document.documentElement.classList.toggle("dark-mode", isDark);

SwaggerUIBundle({
  url: place.dataset.url,
  domNode: place,
  deepLinking: false,
  docExpansion: "none",
  defaultModelsExpandDepth: -1,
  filter: true,
  validatorUrl: null,
  requestInterceptor: withToken,
});
