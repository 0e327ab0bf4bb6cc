# SPDX-License-Identifier: Apache-2.0
"""A CSI driver that answers CreateVolume and DeleteVolume at once and has nothing: what others can be compared with.

usage: instant_driver.py NAME SOCKET       (PYTHONPATH: where csi_pb2 is)
"""
import concurrent.futures
import sys

import csi_pb2 as csi
import grpc

PLUGIN = csi.PluginCapability.Service.Type
RPC = csi.ControllerServiceCapability.RPC


def create(request, _):
    volume = csi.Volume(volume_id=request.name, capacity_bytes=request.capacity_range.required_bytes)
    return csi.CreateVolumeResponse(volume=volume)


def capabilities(*types):
    return [csi.ControllerServiceCapability(rpc=RPC(type=t)) for t in types]


METHODS = {
    "Identity": {
        "GetPluginInfo": lambda *_: csi.GetPluginInfoResponse(name=sys.argv[1], vendor_version="1"),
        "GetPluginCapabilities": lambda *_: csi.GetPluginCapabilitiesResponse(capabilities=[
            csi.PluginCapability(service=csi.PluginCapability.Service(type=PLUGIN.CONTROLLER_SERVICE))]),
        "Probe": lambda *_: csi.ProbeResponse(),
    },
    "Controller": {
        "ControllerGetCapabilities": lambda *_: csi.ControllerGetCapabilitiesResponse(
            capabilities=capabilities(RPC.CREATE_DELETE_VOLUME)),
        "CreateVolume": create,
        "DeleteVolume": lambda *_: csi.DeleteVolumeResponse(),
    },
}


def handlers(methods):
    return {name: grpc.unary_unary_rpc_method_handler(
        function, getattr(csi, name + "Request").FromString, getattr(csi, name + "Response").SerializeToString)
        for name, function in methods.items()}


def main():
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
    for service, methods in METHODS.items():
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("csi.v1." + service, handlers(methods))])
    server.add_insecure_port(f"unix://{sys.argv[2]}")
    server.start()
    server.wait_for_termination()


main()
