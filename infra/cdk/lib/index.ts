/** Constructs for tollgate. Functions are given as folders with a `bootstrap`: nothing is compiled when a template is made. */
export * from "./authorizer";
export * from "./edge";
export * from "./options";
export * from "./tollgate";
