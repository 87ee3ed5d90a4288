<?php
// Serves files as an application does: without their length, so that the answer comes in chunks. A request's body is read,
// and its size told in the field X-Body. The field X-Client tells who asks.
$path = $_SERVER['DOCUMENT_ROOT'] . $_SERVER['SCRIPT_NAME'];
header('X-Body: ' . strlen(file_get_contents('php://input')));
header("X-Client: {$_SERVER['REMOTE_ADDR']}");
header('Content-Type: application/octet-stream');
if (!is_file($path)) {
    http_response_code(404);
    exit("none\n");
}
readfile($path);
