// A receiver made of public libraries: checks each request's signature and reads its CloudEvent, in either mode.
//   node receiver.cjs PORT_FILE SECRETS_FILE LOG_FILE      SECRETS_FILE: {"PATH": "whsec_..."}
"use strict";
const fs = require("fs");
const http = require("http");
const { HTTP } = require("cloudevents");
const { Webhook } = require("standardwebhooks");

const [portFile, secretsFile, logFile] = process.argv.slice(2);

function accepts(secret, body, headers) {
    try {
        new Webhook(secret).verify(body, headers);
        return true;
    } catch {
        return false;
    }
}

function read(request, body) {
    const secret = JSON.parse(fs.readFileSync(secretsFile, "ascii"))[request.url.slice(1)];
    const event = HTTP.toEvent({ headers: request.headers, body });
    event.validate();
    return {
        verified: accepts(secret, body, request.headers),
        forged: accepts(secret, body + " ", request.headers),
        webhook_id: request.headers["webhook-id"],
        id: event.id,
        source: event.source,
        type: event.type,
        // The binary mode's headers are percent-encoded, which this library leaves to its caller.
        subject: request.headers["ce-id"] ? decodeURIComponent(event.subject) : event.subject,
        traceparent: event.traceparent,
        datacontenttype: event.datacontenttype || request.headers["content-type"],
        data: event.data,
    };
}

const server = http.createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
        try {
            fs.appendFileSync(logFile, JSON.stringify(read(request, Buffer.concat(parts).toString())) + "\n");
            response.writeHead(204).end();
        } catch (error) {
            console.error(error);
            response.writeHead(400).end();
        }
    });
});
server.listen(0, "127.0.0.1", () => {
    fs.writeFileSync(portFile + ".new", String(server.address().port));
    fs.renameSync(portFile + ".new", portFile);
});
